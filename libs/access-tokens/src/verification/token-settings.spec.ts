import { loadConfig } from '@platform/service-defaults';
import { z } from 'zod';
import { configuredTokens, tokenConfigShape } from './token-settings';

const text = (fill: number): string => Buffer.alloc(32, fill).toString('base64url');
const REQUIRED = {
  TOKEN_ISSUER: 'https://auth.test',
  TOKEN_AUDIENCE: 'platform',
  ACCESS_TOKEN_HMAC_KEY: text(1),
  ACCESS_TOKEN_HMAC_KEY_ID: 'current',
};
const load = (env: NodeJS.ProcessEnv) => loadConfig(z.object(tokenConfigShape), { ...REQUIRED, ...env });
const hs256 = (kid: string | undefined, issuer = REQUIRED.TOKEN_ISSUER) => ({
  kid,
  issuer,
  alg: 'HS256' as const,
});
const legacy = (...issuers: unknown[]): string => JSON.stringify(issuers);
const OLD = {
  issuer: 'https://old.test',
  audience: 'old',
  keys: [{ kid: 'o1', secret: text(5) }, { secret: text(6) }],
};

describe('token settings', () => {
  it('accepts the current, previous and next keys during a rotation', async () => {
    const { keys } = configuredTokens(
      load({ ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: `before:${text(2)}, after:${text(3)},current:${text(1)}` }),
    );
    for (const kid of ['current', 'before', 'after']) expect(await keys.findKey(hs256(kid))).not.toBeNull();
    expect(await keys.findKey(hs256('other'))).toBeNull();
  });

  it('binds the keys of a legacy issuer to that issuer', async () => {
    const { keys, legacyIssuers } = configuredTokens(load({ LEGACY_ISSUERS: legacy(OLD) }));
    expect(legacyIssuers).toEqual([{ issuer: 'https://old.test', audience: 'old' }]);
    expect(await keys.findKey(hs256('o1', OLD.issuer))).not.toBeNull();
    expect(await keys.findKey(hs256(undefined, OLD.issuer))).not.toBeNull();
    expect(await keys.findKey(hs256('o1'))).toBeNull();
  });

  it('defaults to no previous keys and no legacy issuers', () => {
    expect(load({})).toMatchObject({ ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: [], LEGACY_ISSUERS: [] });
  });

  it.each([
    ['no key id', text(2)],
    ['an empty key id', `:${text(2)}`],
    ['a key id that no token may carry', `a b:${text(2)}`],
    ['a short key', 'before:c2hvcnQ'],
    ['a trailing comma', `before:${text(2)},`],
    ['one key id twice', `before:${text(2)},before:${text(3)}`],
  ])('refuses previous keys with %s, without showing them', (_what, given) => {
    expect(() => load({ ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: given })).toThrow(
      /ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: must/,
    );
    expect(() => load({ ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: given })).not.toThrow(text(2));
  });

  it.each([
    ['a text that is not JSON', 'https://old.test'],
    ['JSON that is not a list', JSON.stringify(OLD)],
    ['an issuer without keys', legacy({ ...OLD, keys: [] })],
    ['a short key', legacy({ ...OLD, keys: [{ secret: 'c2hvcnQ' }] })],
    ['an unknown member', legacy({ ...OLD, alg: 'none' })],
    ['one issuer twice', legacy(OLD, OLD)],
  ])('refuses legacy issuers with %s', (_what, given) => {
    expect(() => load({ LEGACY_ISSUERS: given })).toThrow(/LEGACY_ISSUERS: must/);
    expect(() => load({ LEGACY_ISSUERS: given })).not.toThrow('c2hvcnQ');
  });

  it('refuses a different secret under the current key id', () => {
    const config = load({ ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: `current:${text(2)}` });
    expect(() => configuredTokens(config)).toThrow('share the key id current');
  });
});
