import { randomBytes } from 'node:crypto';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { KerberosUnavailableError } from '../src/windows/kerberos-acceptor.service';
import { WindowsTicketsRepository } from '../src/windows/windows-tickets.repository';
import { startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('used Kerberos tickets', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  /** Returns the repository of a replica whose clock is ahead of the database's. */
  const replica = (aheadMs: number): WindowsTicketsRepository => {
    const clock: Clock = {
      now: () => new Date(SYSTEM_CLOCK.now().getTime() + aheadMs),
      monotonicMs: () => SYSTEM_CLOCK.monotonicMs(),
    };
    return new WindowsTicketsRepository(service.app.get(DataSource), clock);
  };

  it('are known on every replica with the right time', async () => {
    const authenticator = randomBytes(64);
    expect(await replica(10_000).record(authenticator)).toBe(true);
    expect(await replica(-10_000).record(authenticator)).toBe(false);
  });

  it.each([-21_000, 32_000, -700_000])(
    'are not checked by a replica whose clock differs by %d ms: their record may have been purged',
    async (aheadMs) => {
      const authenticator = randomBytes(64);
      await expect(replica(aheadMs).record(authenticator)).rejects.toThrow(KerberosUnavailableError);
      expect(await replica(0).record(authenticator)).toBe(true);
    },
  );
});
