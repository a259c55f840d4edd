import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';

const text = z.string();
const published = { kid: text, use: z.literal('sig') };

const jsonWebKey = z
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
  .meta({ id: 'JsonWebKey', description: 'A public key (RFC 7517).' });

export class JsonWebKeySetDto extends createZodDto(z.object({ keys: z.array(jsonWebKey) })) {}

export const JWKS_EXAMPLES = {
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
};

export const JWKS_HEADERS = {
  'Cache-Control': {
    description: 'Maximum time that the keys may be cached.',
    schema: { type: 'string' },
    required: true,
    example: 'public, max-age=30',
  },
} as const;
