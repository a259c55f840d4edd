import { allowedMs, type Cost, costTable, excessive } from './cost-judge';
import { type CostlyRequest, costlyRequests, LARGEST_PAGE } from './generate/costly';
import { makeFixtures } from './test/fixtures';

const PARSE_MS = 8;
const REQUESTS = costlyRequests(makeFixtures());

function requestOf(predicate: (request: CostlyRequest) => boolean): CostlyRequest {
  const found = REQUESTS.find(predicate);
  if (found === undefined) throw new Error('there is no such request');
  return found;
}

const FORM = requestOf(
  ({ isAnonymous, trick, service }) => isAnonymous && trick === 'many form fields' && service === 'auth',
);
const KNOWN = requestOf(({ isAnonymous, trick }) => !isAnonymous && trick === 'unchanged');
const PAGE = requestOf(({ trick }) => trick === LARGEST_PAGE);

const cost = (request: CostlyRequest, bytes: number, cpuMs: number): Cost => ({
  request,
  bytes,
  cpuMs,
  status: '400',
  responseBytes: 300,
});

describe('the processor time allowed for a request', () => {
  it.each([
    ['anonymous, a form of 65 KB without a limit on its fields', cost(FORM, 65_200, 1.5 * PARSE_MS), true],
    ['anonymous, 12,000 members in 65 KB', cost(FORM, 65_200, 1 * PARSE_MS), false],
    ['anonymous, 200 bytes that cost as much as a full body may', cost(FORM, 200, 0.9 * PARSE_MS), true],
    ['with a token, 200 bytes that cost two parses', cost(KNOWN, 200, 2 * PARSE_MS), true],
    ['with a token, 200 bytes that read a row', cost(KNOWN, 200, 0.5 * PARSE_MS), false],
    ['with a token, 512 KiB', cost(KNOWN, 512 * 1_024, 5 * PARSE_MS), false],
    ['with a token, 512 KiB at four times the cost', cost(KNOWN, 512 * 1_024, 20 * PARSE_MS), true],
    ['a page of 1,000 rows', cost(PAGE, 600, 9 * PARSE_MS), false],
    ['a page of 1,000 rows at twice the cost', cost(PAGE, 600, 18 * PARSE_MS), true],
  ])('%s', (_, one, isExcessive) => {
    expect(excessive([one], PARSE_MS)).toEqual(isExcessive ? [one] : []);
  });

  it('scales with the speed of the machine', () => {
    const one = cost(FORM, 65_200, 12);
    expect(allowedMs(one, 2 * PARSE_MS)).toBeCloseTo(2 * allowedMs(one, PARSE_MS));
  });

  it('is less without a token than with one', () => {
    const { bytes } = cost(FORM, 65_200, 0);
    expect(allowedMs({ request: FORM, bytes }, PARSE_MS)).toBeLessThan(
      allowedMs({ request: KNOWN, bytes }, PARSE_MS),
    );
  });

  it('is measured for each body, with and without a token', () => {
    const bodies = REQUESTS.filter(({ body, target }) => body !== null && target === '/Schedules');
    expect(bodies.filter(({ isAnonymous }) => isAnonymous)).toHaveLength(bodies.length / 2);
    for (const { isAnonymous, headers } of bodies)
      expect(headers.some(([name]) => name === 'Authorization')).toBe(!isAnonymous);
  });

  it('is shown for the ten requests that come closest to it, closest first', () => {
    const costs = Array.from({ length: 20 }, (_none, index) => cost(KNOWN, 200 + index, index / 10));
    const table = costTable([...costs, cost(FORM, 300, 40)], PARSE_MS).split('\n');
    expect(table).toHaveLength(14);
    expect(table[3]).toMatch(/ 40\.0 ms .* anonymous, auth \w+ .*: many form fields$/);
    expect(table[4]).toContain('219 B');
    expect(table[13]).toContain('JSON.parse of the largest body: 8.0 ms');
  });
});
