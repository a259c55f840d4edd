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
export class ReloadingKeys implements KeySource {
  private askedAtMs = -Infinity;
  private reloading: Promise<void> | null = null;
  private failure: unknown = null;

  constructor(private readonly options: ReloadingKeysOptions) {}

  findKey(query: KeyQuery): VerificationKey | null | Promise<VerificationKey | null> {
    const key = this.options.ring.findKey(query);
    return key !== null || query.alg === 'HS256' || query.kid === undefined ? key : this.findNewer(query);
  }

  generation(): number {
    return this.options.ring.generation();
  }

  private async findNewer(query: KeyQuery): Promise<VerificationKey | null> {
    await this.lookAgain();
    const key = this.options.ring.findKey(query);
    // "No such key" is an answer only when the keys could be read: it may be the newest one.
    if (key === null && this.failure !== null)
      throw new TokenVerificationUnavailableError('keys', { cause: this.failure });
    return key;
  }

  private lookAgain(): Promise<void> {
    const { clock, reload, cooldownMs = COOLDOWN_MS } = this.options;
    if (this.reloading !== null) return this.reloading;
    if (clock.monotonicMs() - this.askedAtMs < cooldownMs) return Promise.resolve();
    this.askedAtMs = clock.monotonicMs();
    this.failure = null;
    this.reloading = reload()
      .catch((error: unknown) => {
        this.failure = error;
      })
      .finally(() => {
        this.reloading = null;
      });
    return this.reloading;
  }
}
