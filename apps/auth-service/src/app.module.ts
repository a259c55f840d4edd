import { Global, Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AccessTokensModule, combineKeys, configuredTokens } from '@platform/access-tokens';
import type { AccessTokensOptions } from '@platform/access-tokens';
import { DatabaseModule } from '@platform/database';
import { AccessControlController } from './access-control/access-control.controller';
import { BusinessUnitsController } from './business-units/business-units.controller';
import { CustomersClient } from './business-units/customers.client';
import { AUTH_CONFIG } from './config';
import type { AuthConfig } from './config';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import { IdentityModule } from './identity/identity.module';
import { KeysModule } from './keys/keys.module';
import { SigningKeys } from './keys/signing-keys.service';
import { AUTH_SCHEMA } from './migrations/schemas';
import { DatabaseRevocationSource } from './revocations/database-revocation-source.service';
import { RevocationsModule } from './revocations/revocations.module';
import { TokenRejectionFilter } from './token/token-rejection.filter';
import { TokenModule } from './token/token.module';

/** Makes the configuration injectable everywhere. */
@Global()
@Module({})
class ConfigurationModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const provider = { provide: AUTH_CONFIG, useValue: config };
    return { module: ConfigurationModule, providers: [provider], exports: [provider] };
  }
}

/** The authentication service. */
@Module({})
export class AppModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const accessTokens = AccessTokensModule.forRootAsync({
      imports: [KeysModule, RevocationsModule],
      inject: [SigningKeys, DatabaseRevocationSource],
      useFactory: (signingKeys: SigningKeys, revocations: DatabaseRevocationSource) =>
        accessTokensOptions(config, signingKeys, revocations),
    });
    const identity = IdentityModule.forRoot(config);
    return {
      module: AppModule,
      imports: [
        ConfigurationModule.forRoot(config),
        DatabaseModule.forRoot({
          ...AUTH_SCHEMA.settings,
          url: config.DATABASE_URL,
          poolSize: config.DATABASE_POOL_SIZE,
        }),
        accessTokens,
        identity,
        KeysModule,
        RevocationsModule,
        TokenModule.forRoot(identity, accessTokens),
      ],
      controllers: [DiagnosticsController, AccessControlController, BusinessUnitsController],
      providers: [CustomersClient, { provide: APP_FILTER, useClass: TokenRejectionFilter }],
    };
  }
}

/** This service verifies with its own keys and reads revocations from its own table. */
function accessTokensOptions(
  config: AuthConfig,
  signingKeys: SigningKeys,
  revocations: DatabaseRevocationSource,
): AccessTokensOptions {
  const configured = configuredTokens(config);
  return { ...configured, keys: combineKeys(configured.keys, signingKeys.verification), revocations };
}
