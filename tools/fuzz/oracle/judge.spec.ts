import type { FuzzRequest } from '../fuzz-request';
import { CANARY } from '../generate/values';
import type { Outcome } from '../http/connections';
import type { HttpAnswer } from '../http/parse-answer';
import { makeFixtures } from '../test/fixtures';
import { Contract } from './contract';
import { judge, secretsInLog } from './judge';

const { documents } = makeFixtures();
const contracts = {
  auth: new Contract(documents.auth),
  settings: new Contract(documents.settings),
  task: new Contract(documents.task),
};
const secrets = { configured: new Map([['the signing key', 'very-secret-signing-key']]) };
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
const answered = (answer: Partial<HttpAnswer>): Outcome => ({
  kind: 'answered',
  tookMs: 1,
  answer: { status: 200, headers: JSON_HEADERS, body: '"Pong"', closes: false, length: 0, ...answer },
});
const problem = (status: number, more: object = {}): Outcome =>
  answered({
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
const verdict = (asked: FuzzRequest, outcome: Outcome): readonly string[] =>
  judge(asked, outcome, contracts, secrets);

describe('judge', () => {
  it('has nothing against documented answers', () => {
    expect(verdict(request(), answered({}))).toEqual([]);
    expect(verdict(me(), problem(401))).toEqual([]);
    expect(verdict(request({ target: '/nowhere' }), problem(404))).toEqual([]);
  });

  it('finds answers of 500 and above, documented or not', () => {
    expect(verdict(me(), problem(500))).toContain('answered 500');
    expect(verdict(me(), problem(503))).toContain('answered 503');
  });

  it('finds requests without an answer', () => {
    expect(verdict(me(), { kind: 'hung', tookMs: 20_000 })).toEqual(['no answer within 20 s']);
    expect(verdict(me(), { kind: 'closed', tookMs: 1 })).toHaveLength(1);
    const unfinished = { bytes: Buffer.from('GET'), isUnfinished: true };
    expect(verdict(me({ raw: unfinished, kind: 'framing' }), { kind: 'closed', tookMs: 1 })).toEqual([]);
  });

  it('finds statuses, content types and bodies that the document does not have', () => {
    expect(verdict(me(), problem(418))).toEqual(['getCallerIdentity may not answer 418']);
    expect(verdict(me(), answered({ body: '{}' })).join()).toContain('does not fit its schema');
    expect(verdict(me(), answered({ headers: { 'content-type': 'text/html' } })).join()).toContain(
      'text/html',
    );
    expect(verdict(request({ target: '/nowhere' }), answered({}))[0]).toContain('may not answer 200');
  });

  it('finds an accepted hostile token', () => {
    const hostile = me({ kind: 'hostile token', trick: 'alg none', mustBe: [401, 431] });
    expect(verdict(hostile, problem(403))).toContain('alg none was answered 403, not 401 or 431');
  });

  it('finds secrets in answers', () => {
    expect(verdict(me(), problem(401, { detail: `no ${TOKEN}` }))).toContain('the refusal holds a token');
    expect(verdict(me(), problem(401, { detail: CANARY }))).toContain(
      'the refusal repeats a secret of the request',
    );
    expect(verdict(me(), problem(401, { detail: 'very-secret-signing-key' }))).toContain(
      'the answer holds the signing key',
    );
  });
});

describe('secretsInLog', () => {
  it.each([
    ['"msg":"very-secret-signing-key"', 'the signing key'],
    [`"value":"${CANARY} x"`, 'a secret of a request'],
    [`"url":"/x?token=${TOKEN}"`, 'a token'],
    ['Demo-Passw0rd!', 'a password or shared secret'],
  ])('finds %s', (line, what) => {
    expect(secretsInLog(line, secrets)).toEqual([what]);
  });

  it('lets ordinary lines pass', () => {
    expect(secretsInLog('{"msg":"request completed","traceId":"abc"}', secrets)).toEqual([]);
  });
});
