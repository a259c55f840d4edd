import { type ApiContract, hasUnreadablePath } from '#platform/api-contract.ts';
import type { ServiceName } from '#platform/programs.ts';
import { SecretScanner } from '#platform/secret-scan.ts';
import { CANARY, DEVELOPMENT_SECRETS } from './generate/values.ts';
import type { FuzzRequest, HttpResponse, Outcome } from './http.ts';

/**
 * Size above which a request may get no response: a server that refuses it closes before it has read
 * everything.
 */
const MAY_BE_CUT_BYTES = 15_000;
const TOKEN = /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/;

/** Secrets in requests: the kind of each secret, by its value. */
export const SECRETS_OF_REQUESTS: ReadonlyMap<string, string> = new Map([
  [CANARY, 'a secret of a request'],
  ...DEVELOPMENT_SECRETS.map((value) => [value, 'a password or shared secret'] as const),
]);
const ofRequests = new SecretScanner(SECRETS_OF_REQUESTS);

/**
 * Returns all violations of a request's outcome.
 * @param configured finds secrets that no response may contain
 */
export function judge(
  request: FuzzRequest,
  outcome: Outcome,
  contracts: Readonly<Record<ServiceName, ApiContract>>,
  configured: SecretScanner,
): readonly string[] {
  switch (outcome.kind) {
    case 'hung':
      return [`no response within ${(outcome.tookMs / 1_000).toFixed(0)} s`];
    case 'garbage':
      return [`not an HTTP response: ${outcome.detail}`];
    case 'closed':
      return mayClose(request) ? [] : ['the connection was closed without a response'];
    case 'responded':
      return [
        ...judgeStatus(request, outcome.response),
        ...judgeDocument(request, outcome.response, contracts[request.service]),
        ...judgeSecrecy(outcome.response, configured),
      ];
  }
}

function mayClose({ raw, body, headers, target }: FuzzRequest): boolean {
  const headBytes = headers.reduce((sum, [, value]) => sum + value.length, target.length);
  return raw !== null || (body?.length ?? 0) > MAY_BE_CUT_BYTES || headBytes > MAY_BE_CUT_BYTES;
}

function judgeStatus({ mustBe, method, trick }: FuzzRequest, { status }: HttpResponse): string[] {
  if (status >= 500) return [`status ${status}`];
  if (mustBe !== null && !mustBe.includes(status))
    return [`${trick} led to ${status}, not ${mustBe.join(' or ')}`];
  if (method === 'TRACE' && status < 300) return ['TRACE succeeded'];
  return [];
}

function judgeDocument(
  request: FuzzRequest,
  response: HttpResponse,
  contract: ApiContract,
): readonly string[] {
  // Broken HTTP has no operation. An error response must be a problem document.
  const isBroken = request.kind === 'framing';
  if (isBroken && response.status < 400) return [];
  const { method, target } = request;
  const isUnreadable = isBroken || isUnreadableTarget(target) || hasUnreadableHead(request);
  return contract.judge({ method, target, isUnreadable, ...response }).violations;
}

/** True for targets that Fastify refuses before routing: too long, not ASCII, not decodable. */
function isUnreadableTarget(target: string): boolean {
  return target.length > MAY_BE_CUT_BYTES || /[^\x21-\x7e]/.test(target) || hasUnreadablePath(target);
}

/** True for headers that Node's parser refuses. */
function hasUnreadableHead({ headers }: FuzzRequest): boolean {
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  // Control characters are not allowed in a header.
  return bytes > MAY_BE_CUT_BYTES || headers.some(([, value]) => /[\x00-\x08\x0a-\x1f\x7f]/.test(value));
}

function judgeSecrecy(response: HttpResponse, configured: SecretScanner): string[] {
  const text = `${JSON.stringify(response.headers)}\n${response.body}`;
  const found = configured.kindsIn(text).map((kind) => `the response contains ${kind}`);
  if (response.status < 400) return found;
  found.push(...ofRequests.kindsIn(text).map((kind) => `the refusal repeats ${kind}`));
  if (hasToken(text)) found.push('the refusal contains a token');
  return found;
}

/** True if a text contains any signed token, whether or not it was sent. */
export function hasToken(text: string): boolean {
  return TOKEN.test(text);
}
