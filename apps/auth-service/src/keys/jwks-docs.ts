import { jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';

const text = z.string();
const published = { kid: text, use: z.literal('sig') };

const keySet = z
  .object({
    keys: z.array(
      z
        .union([
          z.object({
            ...published,
            kty: z.literal('EC'),
            alg: z.literal('ES256'),
            crv: z.literal('P-256'),
            x: text,
            y: text,
          }),
          z.object({ ...published, kty: z.literal('RSA'), alg: z.literal('RS256'), n: text, e: text }),
        ])
        .meta({ id: 'JsonWebKey', description: 'A public key (RFC 7517).' }),
    ),
  })
  .meta({ id: 'JsonWebKeySet' });

export const GET_JWKS: OperationDocs = {
  ...{
    id: 'getJsonWebKeySet',
    tag: 'Identity and keys',
    summary: 'Get the public keys of asymmetrically signed tokens',
  },
  description:
    'Keys that are about to sign, that sign, and that signed. Read them again at least every minute.',
  answers: {
    200: jsonAnswer(
      'The keys.',
      keySet,
      {
        es256: {
          summary: 'One key',
          value: {
            keys: [
              {
                kty: 'EC',
                crv: 'P-256',
                x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
                y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
                kid: 'es256-20260302',
                alg: 'ES256',
                use: 'sig',
              },
            ],
          },
        },
      },
      {
        'Cache-Control': {
          description: 'How long the keys may be kept.',
          schema: { type: 'string' },
          required: true,
          example: 'public, max-age=30',
        },
      },
    ),
  },
};
