import { generateKeyPairSync } from 'node:crypto';
import { KeyRing, TokenVerificationUnavailableError, createVerificationKey } from '@platform/access-tokens';
import type { KeyQuery } from '@platform/access-tokens';
import { ManualClock } from '@platform/time';
import { ReloadingKeys } from './signing-keys.service';

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = createVerificationKey({ kid: 'new', alg: 'ES256', publicKey });
const query: KeyQuery = { kid: 'new', alg: 'ES256', issuer: 'https://auth.platform.test' };

describe('ReloadingKeys', () => {
  const setUp = (load: (ring: KeyRing) => void) => {
    const ring = new KeyRing();
    const clock = new ManualClock('2026-03-01T12:00:00Z');
    let reloads = 0;
    const reload = async (): Promise<void> => {
      reloads += 1;
      await Promise.resolve();
      load(ring);
    };
    return { keys: new ReloadingKeys({ ring, reload, clock }), clock, reloads: () => reloads };
  };

  it('finds a key that another replica has started to use, with one reload for concurrent look-ups', async () => {
    const { keys, reloads } = setUp((ring) => ring.replace([key]));
    const found = await Promise.all([keys.findKey(query), keys.findKey(query), keys.findKey(query)]);
    expect(found).toEqual([key, key, key]);
    expect(keys.findKey(query)).toBe(key);
    expect(reloads()).toBe(1);
  });

  it('reloads for made-up key ids at most once in the cooldown, and never for symmetric ones', async () => {
    const { keys, clock, reloads } = setUp(() => undefined);
    expect(await keys.findKey({ ...query, alg: 'HS256' })).toBeNull();
    expect(await keys.findKey({ ...query, kid: undefined })).toBeNull();
    expect(reloads()).toBe(0);
    for (let attempt = 0; attempt < 10; attempt += 1)
      expect(await keys.findKey({ ...query, kid: `k${attempt}` })).toBeNull();
    expect(reloads()).toBe(1);
    clock.advance(5_000);
    await keys.findKey(query);
    expect(reloads()).toBe(2);
  });

  it('throws instead of reporting a key as unknown while the keys cannot be read', async () => {
    let isDown = true;
    const { keys, clock } = setUp((ring) => {
      if (isDown) throw new Error('down');
      ring.replace([key]);
    });
    await expect(keys.findKey(query)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
    await expect(keys.findKey(query)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
    isDown = false;
    clock.advance(5_000);
    expect(await keys.findKey(query)).toBe(key);
  });
});
