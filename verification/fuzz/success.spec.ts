import { CANNOT_SUCCEED, judgeSuccesses, nameOf } from './success';
import { makeFixtures } from './test/fixtures';

describe('judgeSuccesses', () => {
  const cannot = new Map([['b', 'needs a missing server']]);

  it('accepts that all have succeeded, except those that cannot', () => {
    expect(judgeSuccesses(['a', 'b'], new Set(['a', 'elsewhere']), cannot)).toEqual(new Map());
  });

  it('finds an operation that never succeeded', () => {
    expect(judgeSuccesses(['a', 'b'], new Set(), cannot)).toEqual(new Map([['a', 'never succeeded']]));
  });

  it('finds an operation that succeeded although it is listed as one that cannot', () => {
    expect([...judgeSuccesses(['a', 'b'], new Set(['a', 'b']), cannot).keys()]).toEqual(['b']);
  });
});

describe('CANNOT_SUCCEED', () => {
  it('lists only existing operations', () => {
    const operations = makeFixtures().operations.map(nameOf);
    expect(operations).toEqual(expect.arrayContaining([...CANNOT_SUCCEED.keys()]));
  });
});
