import type { ServiceName } from '#platform/programs.ts';
import type { FuzzRequest } from '../fuzz-request.ts';
import { CANARY, DEVELOPMENT_SECRETS } from '../generate/values.ts';
import type { Outcome } from '../http/connections.ts';
import type { HttpAnswer } from '../http/parse-answer.ts';
import type { Contract } from './contract.ts';

/** What no service may ever answer or log. */
export interface Secrets {
  /** By what they are. */
  readonly configured: ReadonlyMap<string, string>;
}

/** Requests larger than this may lose their answer: a server that refuses them closes before it has read all. */
const MAY_BE_CUT_BYTES = 15_000;
const TOKEN = /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/;

/** Everything that is wrong with what became of a request; empty: nothing. */
export function judge(
  request: FuzzRequest,
  outcome: Outcome,
  contracts: Readonly<Record<ServiceName, Contract>>,
  secrets: Secrets,
): readonly string[] {
  switch (outcome.kind) {
    case 'hung':
      return [`no answer within ${(outcome.tookMs / 1_000).toFixed(0)} s`];
    case 'garbage':
      return [`not an HTTP answer: ${outcome.detail}`];
    case 'closed':
      return mayClose(request) ? [] : ['the connection was closed without an answer'];
    case 'answered':
      return [
        ...judgeStatus(request, outcome.answer),
        ...judgeDocument(request, outcome.answer, contracts[request.service]),
        ...judgeSecrecy(outcome.answer, secrets),
      ];
  }
}

function mayClose({ raw, body, headers, target }: FuzzRequest): boolean {
  const headBytes = headers.reduce((sum, [, value]) => sum + value.length, target.length);
  return raw !== null || (body?.length ?? 0) > MAY_BE_CUT_BYTES || headBytes > MAY_BE_CUT_BYTES;
}

function judgeStatus({ mustBe, method, trick }: FuzzRequest, { status }: HttpAnswer): string[] {
  if (status >= 500) return [`answered ${status}`];
  if (mustBe !== null && !mustBe.includes(status))
    return [`${trick} was answered ${status}, not ${mustBe.join(' or ')}`];
  if (method === 'TRACE' && status < 300) return ['TRACE was answered'];
  return [];
}

function judgeDocument(request: FuzzRequest, answer: HttpAnswer, contract: Contract): readonly string[] {
  // What is no HTTP has no operation; its answers are only problems.
  const isBroken = request.kind === 'framing';
  if (isBroken && answer.status < 400) return [];
  const { method, target } = request;
  const isUnreadable = isBroken || isUnreadableTarget(target) || hasUnreadableHead(request);
  return contract.violations({ method, target, isUnreadable, ...answer });
}

/** Addresses that Fastify refuses before it knows their operation, and heads that Node refuses. */
function isUnreadableTarget(target: string): boolean {
  // HTTP is ASCII.
  if (target.length > MAY_BE_CUT_BYTES || /[^\x21-\x7e]/.test(target)) return true;
  const [path = ''] = target.split('?', 1);
  try {
    return path.split('/').some((part) => decodeURIComponent(part).length > 4_096);
  } catch (error) {
    if (error instanceof URIError) return true;
    throw error;
  }
}

function hasUnreadableHead({ headers }: FuzzRequest): boolean {
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  // What HTTP does not allow in a header.
  return bytes > MAY_BE_CUT_BYTES || headers.some(([, value]) => /[\x00-\x08\x0a-\x1f\x7f]/.test(value));
}

function judgeSecrecy(answer: HttpAnswer, { configured }: Secrets): string[] {
  const text = `${JSON.stringify(answer.headers)}\n${answer.body}`;
  const found = [...configured]
    .filter(([, value]) => text.includes(value))
    .map(([name]) => `the answer holds ${name}`);
  if (answer.status < 400) return found;
  if (text.includes(CANARY)) found.push('the refusal repeats a secret of the request');
  if (DEVELOPMENT_SECRETS.some((secret) => text.includes(secret)))
    found.push('the refusal repeats a password or shared secret');
  if (TOKEN.test(text)) found.push('the refusal holds a token');
  return found;
}

/** Secrets in a line of a log, by what they are. */
export function secretsInLog(line: string, { configured }: Secrets): readonly string[] {
  const found = [...configured].filter(([, value]) => line.includes(value)).map(([name]) => name);
  if (line.includes(CANARY)) found.push('a secret of a request');
  if (DEVELOPMENT_SECRETS.some((secret) => line.includes(secret))) found.push('a password or shared secret');
  if (TOKEN.test(line)) found.push('a token');
  return found;
}
