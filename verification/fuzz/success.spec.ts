import { CANNOT_SUCCEED, judgeSuccesses, nameOf } from './success';
import { makeFixtures } from './test/fixtures';

describe('judgeSuccesses', () => {
  const cannot = new Map([['b', 'needs what is not here']]);

  it('is content when all but those that cannot have succeeded', () => {
    expect(judgeSuccesses(['a', 'b'], new Set(['a', 'elsewhere']), cannot)).toEqual(new Map());
  });

  it('finds one that never succeeded', () => {
    expect(judgeSuccesses(['a', 'b'], new Set(), cannot)).toEqual(new Map([['a', 'never succeeded']]));
  });

  it('finds one that succeeded although it is listed', () => {
    expect([...judgeSuccesses(['a', 'b'], new Set(['a', 'b']), cannot).keys()]).toEqual(['b']);
  });
});

describe('CANNOT_SUCCEED', () => {
  it('lists operations that there are', () => {
    const operations = makeFixtures().operations.map(nameOf);
    expect(operations).toEqual(expect.arrayContaining([...CANNOT_SUCCEED.keys()]));
  });
});
