import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';

interface Stored {
  payload: Payload;
  expiresAtMs: number;
}

/** What oidc-provider keeps: sessions, grants, codes, interactions. */
export interface Payload {
  uid?: string;
  userCode?: string;
  grantId?: string;
  consumed?: number;
  [member: string]: unknown;
}

/** Beyond this many entries the expired ones are swept out. */
const SWEEP_SIZE = 1_000;

/** Storage of one kind of thing for oidc-provider, in this process's memory. The package's own says at every start that it is not
 *  for production; neither is this, but a development provider need not be told. */
export class MemoryStore {
  private readonly entries = new Map<string, Stored>();

  upsert(id: string, payload: Payload, expiresInSeconds: number | undefined): Promise<void> {
    if (this.entries.size > SWEEP_SIZE) this.sweep();
    const lifetimeMs = expiresInSeconds === undefined ? Infinity : expiresInSeconds * SECOND_MS;
    this.entries.set(id, { payload, expiresAtMs: SYSTEM_CLOCK.monotonicMs() + lifetimeMs });
    return Promise.resolve();
  }

  find(id: string): Promise<Payload | undefined> {
    return Promise.resolve(this.live(this.entries.get(id)));
  }

  findByUid(uid: string): Promise<Payload | undefined> {
    return this.findBy((payload) => payload.uid === uid);
  }

  findByUserCode(userCode: string): Promise<Payload | undefined> {
    return this.findBy((payload) => payload.userCode === userCode);
  }

  consume(id: string): Promise<void> {
    const stored = this.entries.get(id);
    if (stored !== undefined) stored.payload.consumed = Math.floor(SYSTEM_CLOCK.now().getTime() / SECOND_MS);
    return Promise.resolve();
  }

  destroy(id: string): Promise<void> {
    this.entries.delete(id);
    return Promise.resolve();
  }

  revokeByGrantId(grantId: string): Promise<void> {
    for (const [id, { payload }] of this.entries) if (payload.grantId === grantId) this.entries.delete(id);
    return Promise.resolve();
  }

  private findBy(matches: (payload: Payload) => boolean): Promise<Payload | undefined> {
    const found = [...this.entries.values()].find(({ payload }) => matches(payload));
    return Promise.resolve(this.live(found));
  }

  private live(stored: Stored | undefined): Payload | undefined {
    return stored !== undefined && stored.expiresAtMs > SYSTEM_CLOCK.monotonicMs()
      ? stored.payload
      : undefined;
  }

  private sweep(): void {
    for (const [id, stored] of this.entries) if (this.live(stored) === undefined) this.entries.delete(id);
  }
}
