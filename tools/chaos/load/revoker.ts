import { setTimeout as delay } from 'node:timers/promises';
import { jtiOf, type LoadContext } from './context.ts';
import { signIn } from './session-holder.ts';

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
