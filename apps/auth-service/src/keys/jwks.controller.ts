import { Controller, Get, Header } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags } from '@platform/open-api';
import { JWKS_EXAMPLES, JWKS_HEADERS, JsonWebKeySetDto } from './jwks.dto';
import type { PublishedKey } from './signing-keys.service';
import { SigningKeys } from './signing-keys.service';

/** Serves the public keys that verify asymmetrically signed tokens. Additive to the specification. */
@Public()
@Controller('auth/.well-known')
@ApiTags('Identity and keys')
export class JwksController {
  constructor(private readonly signingKeys: SigningKeys) {}

  @Get('jwks.json')
  @ApiOperation({
    operationId: 'getJsonWebKeySet',
    summary: 'Get the public keys of asymmetrically signed tokens',
    description: 'The next, the active and the retired keys. Reload them at least every minute.',
  })
  @ApiOkResponse({
    description: 'The keys.',
    type: JsonWebKeySetDto.Output,
    examples: JWKS_EXAMPLES,
    headers: JWKS_HEADERS,
  })
  @Header('Cache-Control', 'public, max-age=30')
  async keys(): Promise<{ keys: readonly PublishedKey[] }> {
    return { keys: await this.signingKeys.publishedKeys() };
  }
}
