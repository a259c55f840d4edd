import { ApiContract } from '#platform/api-contract.ts';
import { SecretScanner } from '#platform/secret-scan.ts';
import { CANARY } from './generate/values';
import type { FuzzRequest, HttpResponse, Outcome } from './http';
import { makeFixtures } from './test/fixtures';
import { hasToken, judge, SECRETS_OF_REQUESTS } from './judge';

const { documents } = makeFixtures();
const contracts = {
  auth: new ApiContract(documents.auth),
  settings: new ApiContract(documents.settings),
  task: new ApiContract(documents.task),
};
const configured = new SecretScanner(new Map([['very-secret-signing-key', 'the signing key']]));
const TOKEN = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0x.${'a'.repeat(43)}`;

const request = (changes: Partial<FuzzRequest> = {}): FuzzRequest => ({
  service: 'auth',
  kind: 'valid',
  trick: '',
  method: 'GET',
  target: '/auth/diagnostics/ping',
  headers: [],
  body: null,
  raw: null,
  mustBe: null,
  ...changes,
});
const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' };
const responded = (response: Partial<HttpResponse>): Outcome => ({
  kind: 'responded',
  tookMs: 1,
  response: { status: 200, headers: JSON_HEADERS, body: '"Pong"', closes: false, length: 0, ...response },
});
const problem = (status: number, more: object = {}): Outcome =>
  responded({
    status,
    headers: { 'content-type': 'application/problem+json', 'www-authenticate': 'Bearer' },
    body: JSON.stringify({
      type: 'about:blank',
      title: 'x',
      status,
      instance: '/x',
      traceId: 'a'.repeat(32),
      ...more,
    }),
  });
const me = (changes: Partial<FuzzRequest> = {}): FuzzRequest => request({ target: '/auth/me', ...changes });
const verdict = (sent: FuzzRequest, outcome: Outcome): readonly string[] =>
  judge(sent, outcome, contracts, configured);

describe('judge', () => {
  it('accepts documented responses', () => {
    expect(verdict(request(), responded({}))).toEqual([]);
    expect(verdict(me(), problem(401))).toEqual([]);
    expect(verdict(request({ target: '/nowhere' }), problem(404))).toEqual([]);
  });

  it('finds statuses of 500 and above, documented or not', () => {
    expect(verdict(me(), problem(500))).toContain('status 500');
    expect(verdict(me(), problem(503))).toContain('status 503');
  });

  it('finds requests without a response', () => {
    expect(verdict(me(), { kind: 'hung', tookMs: 20_000 })).toEqual(['no response within 20 s']);
    expect(verdict(me(), { kind: 'closed', tookMs: 1 })).toHaveLength(1);
    const unfinished = { bytes: Buffer.from('GET'), isUnfinished: true };
    expect(verdict(me({ raw: unfinished, kind: 'framing' }), { kind: 'closed', tookMs: 1 })).toEqual([]);
  });

  it('finds statuses, content types and bodies that are not documented', () => {
    expect(verdict(me(), problem(418))).toEqual(['getCallerIdentity does not document status 418']);
    expect(verdict(me(), responded({ body: '{}' })).join()).toContain('does not fit its schema');
    expect(verdict(me(), responded({ headers: { 'content-type': 'text/html' } })).join()).toContain(
      'text/html',
    );
    expect(verdict(request({ target: '/nowhere' }), responded({}))[0]).toContain(
      '200 at an undocumented address',
    );
  });

  it('finds an accepted hostile token', () => {
    const hostile = me({ kind: 'hostile token', trick: 'alg none', mustBe: [401, 431] });
    expect(verdict(hostile, problem(403))).toContain('alg none led to 403, not 401 or 431');
  });

  it('finds secrets in responses', () => {
    expect(verdict(me(), problem(401, { detail: `no ${TOKEN}` }))).toContain('the refusal contains a token');
    expect(verdict(me(), problem(401, { detail: CANARY }))).toContain(
      'the refusal repeats a secret of a request',
    );
    expect(verdict(me(), problem(401, { detail: 'very-secret-signing-key' }))).toContain(
      'the response contains the signing key',
    );
  });

  it('finds encoded secrets', () => {
    const inBase64 = Buffer.from('x:very-secret-signing-key').toString('base64');
    expect(verdict(request(), responded({ body: JSON.stringify(inBase64) }))).toContain(
      'the response contains the signing key',
    );
    const inUrl = encodeURIComponent('Demo-Passw0rd!"');
    expect(verdict(me(), problem(401, { detail: inUrl }))).toContain(
      'the refusal repeats a password or shared secret',
    );
  });
});

describe('a forbidden text in a log', () => {
  it.each([
    [`"value":"${CANARY} x"`, 'a secret of a request'],
    [`"body":"${Buffer.from(`{"value":"${CANARY}"}`).toString('base64')}"`, 'a secret of a request'],
    ['Demo-Passw0rd!', 'a password or shared secret'],
  ])('is found in %s', (line, kind) => {
    expect(new SecretScanner(SECRETS_OF_REQUESTS).kindsIn(line)).toEqual([kind]);
  });

  it('is any token', () => {
    expect(hasToken(`"url":"/x?token=${TOKEN}"`)).toBe(true);
    expect(hasToken('{"msg":"request completed","traceId":"abc"}')).toBe(false);
  });
});
