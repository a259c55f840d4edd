import fc from 'fast-check';
import { headerText, HOSTILE_TOKENS } from '../../test/hostile-tokens';
import { CLAIMS, es256Token, rs256Token, token } from '../../test/token-builder';
import { testVerifier } from '../../test/verifier-builder';
import { AccessTokenError } from '../token/access-token-error';

describe('hostile tokens', () => {
  it.each(Object.entries(HOSTILE_TOKENS).map(([title, [reason, text]]) => [title, reason, text] as const))(
    'refuses %s: %s',
    async (_title, reason, text) => {
      const { verifier } = testVerifier();
      const refusal: unknown = await verifier.verify(text).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(AccessTokenError);
      expect((refusal as AccessTokenError).reason).toBe(reason);
    },
  );

  it('refuses each of them right after valid tokens were accepted and cached', async () => {
    const { verifier } = testVerifier();
    for (const valid of [token(), rs256Token(), es256Token()]) await verifier.verify(valid);
    for (const [, text] of Object.values(HOSTILE_TOKENS)) {
      await expect(verifier.verify(text)).rejects.toBeInstanceOf(AccessTokenError);
    }
  });

  it('refuses every token that differs from a valid one in any character', async () => {
    const { verifier } = testVerifier();
    const validTokens = [token(), rs256Token(), es256Token()];
    const alphabet = 'AZaz09-_.=+/ é\u0000';
    const change = fc.tuple(
      fc.constantFrom(...validTokens),
      fc.nat(),
      fc.constantFrom(...alphabet, ''),
      fc.boolean(),
    );
    await fc.assert(
      fc.asyncProperty(change, async ([valid, position, replacement, insert]) => {
        const at = position % valid.length;
        const changed = valid.slice(0, at) + replacement + valid.slice(insert ? at : at + 1);
        fc.pre(changed !== valid);
        await expect(verifier.verify(changed)).rejects.toBeInstanceOf(AccessTokenError);
      }),
      { numRuns: 500 },
    );
  });

  it('refuses any text and any claims with an AccessTokenError and no other error', async () => {
    const { verifier } = testVerifier();
    const signedClaims = fc.dictionary(fc.constantFrom(...Object.keys(CLAIMS)), fc.jsonValue(), {
      minKeys: 1,
    });
    const hostile = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.jsonValue().map((value) => headerText(JSON.stringify(value))),
      signedClaims.map((claims) => token({ claims: JSON.stringify(claims) })),
    );
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        await expect(verifier.verify(text)).rejects.toBeInstanceOf(AccessTokenError);
      }),
      { numRuns: 500 },
    );
  });

  it('reveals nothing of the token in its errors', async () => {
    const { verifier } = testVerifier();
    for (const [, text] of Object.values(HOSTILE_TOKENS)) {
      const refusal = (await verifier.verify(text).catch((error: unknown) => error)) as Error;
      expect(refusal.message).toMatch(/^access token refused: [a-z-]+$/);
    }
  });
});
