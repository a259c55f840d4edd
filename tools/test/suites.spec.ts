import { planSuites, suiteSource } from './suites.ts';

const files = (count: number, name = 'a'): string[] =>
  Array.from({ length: count }, (_, index) => `libs/x/test/${name}-${index}.integration-spec.ts`);

describe('planSuites', () => {
  it('puts each file into exactly one suite', () => {
    const all = files(57);
    expect(planSuites(all).flat().sort()).toEqual(all.sort());
  });

  it('makes suites of about equal duration, and one if there is little to run', () => {
    const sizes = planSuites(files(40)).map((suite) => suite.length);
    expect(sizes).toEqual([10, 10, 10, 10]);
    expect(planSuites(files(3))).toHaveLength(1);
  });

  it('begins with the suite of the slowest file, which it shares with few others', () => {
    const slow = 'apps/auth-service/test/session-bounds.integration-spec.ts';
    const [first] = planSuites([...files(40), slow]);
    expect(first).toEqual([slow]);
  });

  it('has no suite for a project without tests', () => {
    expect(planSuites([])).toEqual([]);
  });
});

describe('suiteSource', () => {
  it('names each file before its tests', () => {
    const source = suiteSource(['libs/x/test/a.integration-spec.ts'], '../../..');
    expect(source).toContain(`describe('libs/x/test/a.integration-spec.ts', () => {`);
    expect(source).toContain(`require('../../../libs/x/test/a.integration-spec.ts');`);
  });
});
