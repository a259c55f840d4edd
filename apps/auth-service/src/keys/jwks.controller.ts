import { Controller, Get, Header } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { Documented } from '@platform/service-defaults';
import { GET_JWKS } from './jwks-docs';
import type { PublishedKey } from './signing-keys.service';
import { SigningKeys } from './signing-keys.service';

/** The public keys, for services that validate asymmetrically signed tokens. Additive to the specification. */
@Public()
@Controller('auth/.well-known')
export class JwksController {
  constructor(private readonly signingKeys: SigningKeys) {}

  @Get('jwks.json')
  @Documented(GET_JWKS)
  @Header('Cache-Control', 'public, max-age=30')
  async keys(): Promise<{ keys: readonly PublishedKey[] }> {
    return { keys: await this.signingKeys.publishedKeys() };
  }
}
