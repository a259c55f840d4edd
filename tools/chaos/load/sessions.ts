import { setTimeout as delay } from 'node:timers/promises';
import { jtiOf, type LoadContext, PAUSE_MS } from './caller.ts';
import type { Session } from './journal.ts';

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** Of the development identities in the README. */
const APPLICATION = {
  applicationKey: 'demo-backend',
  sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
};
const INTERNAL_PARTNER = 1;
/** A rotated token may be presented again for 30 s. Whoever could not within this may have lost the session rightly. */
const GRACE_MS = 27_000;
/** How often a session is ended by revoking it. */
const REVOKE_RATE = 0.03;

/** Holds one session of refresh tokens after the other. */
export async function holdSessions(context: LoadContext): Promise<void> {
  while (!context.stop.aborted) {
    const tokens = await signIn(context);
    if (tokens === null) continue;
    const session: Session = { firstJti: jtiOf(tokens.refreshToken), rotations: [], end: 'alive' };
    context.journal.sessions.push(session);
    await refreshUntilOver(context, session, tokens);
  }
}

/** Signs in with the plain shared secret; null when that got no answer. */
export async function signIn({ caller, urls }: LoadContext): Promise<Tokens | null> {
  const { answer } = await caller.persist({
    operation: 'POST trust-simple',
    method: 'POST',
    url: `${urls.auth}/auth/token/trust-simple`,
    body: { ...APPLICATION, persona: INTERNAL_PARTNER, userName: 'ivy.internal' },
  });
  return answer === null ? null : (JSON.parse(answer.text) as Tokens);
}

async function refreshUntilOver(context: LoadContext, session: Session, first: Tokens): Promise<void> {
  let tokens = first;
  while (session.end === 'alive' && !context.stop.aborted) {
    if (context.random.chance(REVOKE_RATE)) await revokeSession(context, session, tokens);
    const next = await refresh(context, session, tokens);
    if (next !== null) tokens = next;
    await delay(PAUSE_MS);
  }
}

async function refresh(
  { caller, journal, urls }: LoadContext,
  session: Session,
  tokens: Tokens,
): Promise<Tokens | null> {
  const outcome = await caller.persist(
    {
      operation: 'POST refresh',
      method: 'POST',
      url: `${urls.auth}/auth/token/refresh`,
      body: { refreshToken: tokens.refreshToken },
      answers: [401],
    },
    GRACE_MS,
  );
  const { answer } = outcome;
  const isLate = outcome.endedAtMs - outcome.invokedAtMs > GRACE_MS;
  if (answer?.status === 200) {
    if (session.end === 'revoked') journal.violations.push('a revoked session was refreshed');
    const next = JSON.parse(answer.text) as Tokens;
    session.rotations.push({ presented: jtiOf(tokens.refreshToken), received: jtiOf(next.refreshToken) });
    return next;
  }
  if (session.end !== 'alive') return null;
  session.end = answer === null || isLate ? 'too-late' : 'rejected';
  if (session.end === 'rejected')
    journal.violations.push(`a session was ended wrongly: ${answer?.text.slice(0, 200) ?? ''}`);
  return null;
}

/** The holder signs out: nobody gets in with this session again. */
async function revokeSession(
  { caller, urls, adminToken }: LoadContext,
  session: Session,
  tokens: Tokens,
): Promise<void> {
  const { answer } = await caller.persist({
    operation: 'PUT revocation',
    method: 'PUT',
    url: `${urls.auth}/auth/revocations/jti/${jtiOf(tokens.refreshToken)}`,
    token: adminToken,
  });
  if (answer !== null) session.end = 'revoked';
  // Nobody knows: neither of the two answers to the next refresh would be wrong.
  else session.end = 'too-late';
}

const BETWEEN_MS = 1_000;
const PROBE_MS = 200;
/** A replica that is cut off refuses everything once its revocations are this old; until then it may not know. */
const STALE_LIMIT_MS = 30_000 + 2_000;

/** Revokes access tokens and uses them on until the settings service refuses them. */
export async function revokeTokens(context: LoadContext): Promise<void> {
  const { caller, journal, urls, adminToken } = context;
  while (!context.stop.aborted) {
    const tokens = await signIn(context);
    if (tokens === null) continue;
    const jti = jtiOf(tokens.accessToken);
    const url = `${urls.auth}/auth/revocations/jti/${jti}`;
    const { answer, endedAtMs } = await caller.persist({
      operation: 'PUT revocation',
      method: 'PUT',
      url,
      token: adminToken,
    });
    if (answer !== null) {
      journal.revokedTokens.push({ jti, token: tokens.accessToken, acknowledgedAtMs: endedAtMs });
      await useUntilRefused(context, tokens.accessToken, endedAtMs);
    }
    await delay(BETWEEN_MS);
  }
}

async function useUntilRefused(context: LoadContext, token: string, revokedAtMs: number): Promise<void> {
  const { caller, journal, urls } = context;
  const call = {
    operation: 'GET with a revoked token',
    method: 'GET',
    url: `${urls.settings}/platform/v1/subsystems/chaos/settings?pageSize=1`,
    token,
    answers: [401],
  } as const;
  while (!context.stop.aborted) {
    const askedAtMs = performance.now();
    const answer = await caller.attempt(call);
    if (answer?.status === 401) return;
    const lateMs = askedAtMs - revokedAtMs;
    if (answer?.status === 200) journal.slowestRevocationMs = Math.max(journal.slowestRevocationMs, lateMs);
    if (answer?.status === 200 && lateMs > STALE_LIMIT_MS) {
      journal.violations.push(`a token still worked ${Math.round(lateMs)} ms after its revocation`);
      return;
    }
    await delay(PROBE_MS);
  }
}
