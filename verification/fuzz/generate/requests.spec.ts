import { bytesOf, REQUEST_KINDS } from '../http';
import { makeFixtures } from '../test/fixtures';
import { costlyRequests } from './costly';
import { makeRequest } from './requests';

const fixtures = makeFixtures();
const requests = Array.from({ length: 3_000 }, (_none, number) => makeRequest(5, number, fixtures));

describe('makeRequest', () => {
  it('makes the same request for the same seed and number', () => {
    // Only malformed bodies are compared: tokens contain random signatures, ids and instants.
    const stable = [...requests.keys()]
      .filter((number) => requests[number]?.kind === 'malformed body')
      .slice(0, 100);
    for (const number of stable) {
      const again = makeRequest(5, number, fixtures);
      expect(again.trick).toBe(requests[number]?.trick);
      expect(again.target).toBe(requests[number]?.target);
    }
  });

  it('makes requests of every kind, for every operation', () => {
    expect(new Set(requests.map(({ kind }) => kind))).toEqual(new Set(REQUEST_KINDS));
    const valid = requests.filter(({ kind }) => kind === 'valid');
    for (const { method, path, service } of fixtures.operations) {
      const pattern = new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}(\\?|$)`);
      const found = valid.some(
        (one) => one.service === service && one.method === method && pattern.test(one.target),
      );
      expect({ method, path, found }).toEqual({ method, path, found: true });
    }
  });

  it('writes well-formed heads, except in deliberately broken requests', () => {
    for (const request of requests.filter(({ raw }) => raw === null)) {
      const head = bytesOf(request, 'host').toString('latin1').split('\r\n\r\n', 1)[0] ?? '';
      expect(head.split('\r\n')[0]).toMatch(/^[A-Z]+ \S+ HTTP\/1\.1$/);
      expect(head).not.toContain('\n\n');
    }
  });

  it('expects a refusal of every hostile token', () => {
    const hostile = requests.filter(({ kind }) => kind === 'hostile token');
    for (const { mustBe } of hostile) {
      expect(mustBe).toEqual(expect.arrayContaining([401]));
      expect(mustBe?.some((status) => status < 400)).toBe(false);
    }
    expect(new Set(hostile.map(({ trick }) => trick)).size).toBeGreaterThan(60);
  });
});

describe('costly requests', () => {
  it('have many fields, members, list items, headers and large pages, within the limits of the services', () => {
    const requests = costlyRequests(fixtures);
    const tricks = new Set(requests.map(({ trick }) => trick));
    expect(tricks).toEqual(
      new Set([
        ...tricks,
        'many form fields',
        'many members',
        'many writes',
        'many settings',
        'largest page',
      ]),
    );
    for (const request of requests) {
      const head = request.headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
      expect(head + request.target.length).toBeLessThan(32_000);
      expect(request.body?.length ?? 0).toBeLessThan(request.service === 'settings' ? 524_288 : 65_536);
    }
  });
});
