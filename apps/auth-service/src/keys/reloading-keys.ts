import { TokenVerificationUnavailableError } from '@platform/access-tokens';
import type { KeyQuery, KeyRing, KeySource, VerificationKey } from '@platform/access-tokens';
import type { Clock } from '@platform/time';

export interface ReloadingKeysOptions {
  ring: KeyRing;
  /** Brings the ring up to date. */
  reload: () => Promise<void>;
  clock: Clock;
  /** Shortest time between two reloads, whatever key ids tokens name. Default 5 s. */
  cooldownMs?: number;
}

const COOLDOWN_MS = 5_000;

/** The ring, looked up again when a token names an asymmetric key that it does not hold: another replica may have begun to use one
 *  that this replica has not read yet. One reload at a time and few of them, so that made-up key ids cost next to nothing. */
export function reloadingKeys({
  ring,
  reload,
  clock,
  cooldownMs = COOLDOWN_MS,
}: ReloadingKeysOptions): KeySource {
  let askedAtMs = -Infinity;
  let reloading: Promise<void> | null = null;
  let failure: unknown = null;

  const lookAgain = (): Promise<void> => {
    if (reloading !== null) return reloading;
    if (clock.monotonicMs() - askedAtMs < cooldownMs) return Promise.resolve();
    askedAtMs = clock.monotonicMs();
    failure = null;
    reloading = reload()
      .catch((error: unknown) => {
        failure = error;
      })
      .finally(() => {
        reloading = null;
      });
    return reloading;
  };

  const findNewer = async (query: KeyQuery): Promise<VerificationKey | null> => {
    await lookAgain();
    const key = ring.findKey(query);
    // "No such key" is an answer only when the keys could be read: it may be the newest one.
    if (key === null && failure !== null)
      throw new TokenVerificationUnavailableError('keys', { cause: failure });
    return key;
  };

  return {
    findKey(query) {
      const key = ring.findKey(query);
      return key !== null || query.alg === 'HS256' || query.kid === undefined ? key : findNewer(query);
    },
    generation: () => ring.generation(),
  };
}
