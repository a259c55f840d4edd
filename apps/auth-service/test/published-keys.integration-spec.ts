import { ManualClock, SYSTEM_CLOCK } from '@platform/time';
import { SigningKeysRepository } from '../src/keys/signing-keys.repository';
import { startAuthService } from './auth-fixture';

it('concurrent requests for the published keys share one read', async () => {
  const clock = new ManualClock(SYSTEM_CLOCK.now());
  const service = await startAuthService({ clock });
  try {
    const reads = jest.spyOn(service.app.get(SigningKeysRepository), 'findUsable');
    for (let round = 1; round <= 2; round += 1) {
      clock.advance(60_000);
      const sent = Array.from({ length: 20 }, () => service.get('/auth/.well-known/jwks.json'));
      for (const { status, body } of await Promise.all(sent))
        expect([status, body.keys.length]).toEqual([200, 1]);
      expect(reads).toHaveBeenCalledTimes(round);
    }
  } finally {
    await service.stop();
  }
});
