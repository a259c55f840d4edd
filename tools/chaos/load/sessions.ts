import { setTimeout as delay } from 'node:timers/promises';
import { DEMO_BACKEND } from '#platform/callers.ts';
import { type LoadContext, type Outcome, PAUSE_MS, repeatUntilStopped } from './caller.ts';
import type { Session } from './journal.ts';

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

const INTERNAL_PARTNER = 1;
/** A rotated token may be presented again for 30 s. A holder that could not within this may have lost the session rightly. */
const GRACE_MS = 27_000;
/** Processes may see a step of the database's clock so much later. By that clock the 30 s may then have passed. */
const STEP_SEEN_MS = 1_500;
/** Probability (0–1) that a holder revokes its session before a refresh. */
const REVOKE_RATE = 0.03;

/** Holds one session of refresh tokens after the other. */
export function holdSessions(context: LoadContext): Promise<void> {
  return repeatUntilStopped(context, async () => {
    let tokens = await signIn(context);
    if (tokens === null) return;
    const session: Session = { firstJti: jtiOf(tokens.refreshToken), rotations: [], end: 'alive' };
    context.journal.sessions.push(session);
    while (session.end === 'alive' && !context.stop.aborted) {
      if (context.random.chance(REVOKE_RATE)) {
        const { response } = await revoke(context, jtiOf(tokens.refreshToken));
        // Without a response nobody knows: neither outcome of the next refresh would be wrong.
        session.end = response === null ? 'too-late' : 'revoked';
      }
      tokens = (await refresh(context, session, tokens)) ?? tokens;
      await delay(PAUSE_MS);
    }
  });
}

/** Signs in with the plain shared secret; null when that got no response. */
export async function signIn({ caller, urls }: LoadContext): Promise<Tokens | null> {
  const { response } = await caller.persist({
    operation: 'POST trust-simple',
    url: `${urls.auth}/auth/token/trust-simple`,
    body: { ...DEMO_BACKEND, persona: INTERNAL_PARTNER, userName: 'ivy.internal' },
  });
  return response === null ? null : (JSON.parse(response.text) as Tokens);
}

async function refresh(
  { caller, journal, urls }: LoadContext,
  session: Session,
  { refreshToken }: Tokens,
): Promise<Tokens | null> {
  const call = {
    operation: 'POST refresh',
    url: `${urls.auth}/auth/token/refresh`,
    body: { refreshToken },
    finalStatuses: [401],
  } as const;
  const { response, invokedAtMs, endedAtMs } = await caller.persist(call, GRACE_MS);
  if (response?.status === 200) {
    if (session.end === 'revoked') journal.violations.push('a revoked session was refreshed');
    const next = JSON.parse(response.text) as Tokens;
    session.rotations.push({ presented: jtiOf(refreshToken), received: jtiOf(next.refreshToken) });
    return next;
  }
  if (session.end !== 'alive') return null;
  const isStepped = journal.clockStepsAtMs.some(
    (atMs) => atMs > invokedAtMs - STEP_SEEN_MS && atMs < endedAtMs,
  );
  const isLate = response === null || endedAtMs - invokedAtMs > GRACE_MS || isStepped;
  session.end = isLate ? 'too-late' : 'rejected';
  if (!isLate) journal.violations.push(`a session was ended wrongly: ${response.text.slice(0, 200)}`);
  return null;
}

function revoke({ caller, urls, adminToken: token }: LoadContext, jti: string): Promise<Outcome> {
  const url = `${urls.auth}/auth/revocations/jti/${jti}`;
  return caller.persist({ operation: 'PUT revocation', url, token });
}

const BETWEEN_MS = 1_000;
const PROBE_MS = 200;
/** A replica that is cut off refuses everything once its revocations are this old; until then it may not know. */
const STALE_LIMIT_MS = 30_000 + 2_000;

/** Revokes access tokens and goes on using them until the settings service refuses them. */
export function revokeTokens(context: LoadContext): Promise<void> {
  const revokeOne = async (): Promise<void> => {
    const tokens = await signIn(context);
    if (tokens === null) return;
    const { accessToken: token } = tokens;
    const jti = jtiOf(token);
    const { response, endedAtMs } = await revoke(context, jti);
    if (response === null) return;
    context.journal.revokedTokens.push({ jti, token });
    await useUntilRefused(context, token, endedAtMs);
  };
  return repeatUntilStopped(context, revokeOne, BETWEEN_MS);
}

async function useUntilRefused(context: LoadContext, token: string, revokedAtMs: number): Promise<void> {
  const { caller, journal, urls } = context;
  const call = {
    operation: 'GET with a revoked token',
    url: `${urls.settings}/platform/v1/subsystems/chaos/settings?pageSize=1`,
    token,
    finalStatuses: [401],
  } as const;
  while (!context.stop.aborted) {
    const lateMs = performance.now() - revokedAtMs;
    const response = await caller.attempt(call);
    if (response?.status === 401) return;
    if (response?.status === 200) journal.slowestRevocationMs = Math.max(journal.slowestRevocationMs, lateMs);
    if (response?.status === 200 && lateMs > STALE_LIMIT_MS) {
      journal.violations.push(`a token still worked ${Math.round(lateMs)} ms after its revocation`);
      return;
    }
    await delay(PROBE_MS);
  }
}

/** The claim `jti` of a JWT. */
function jtiOf(token: string): string {
  const [, payload = ''] = token.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { jti: string }).jti;
}
