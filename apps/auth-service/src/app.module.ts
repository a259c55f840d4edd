import { Global, Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import {
  AccessTokensModule,
  ServiceAccessTokenHost,
  combineKeys,
  configuredTokens,
} from '@platform/access-tokens';
import type { AccessTokensOptions } from '@platform/access-tokens';
import { DatabaseModule } from '@platform/database';
import { AccessControlController } from './access-control/access-control.controller';
import { ApplicationProofs } from './applications/application-proofs.service';
import { ApplicationsRepository } from './applications/applications.repository';
import { TokenAuditRepository } from './audit/token-audit.repository';
import { TokenAuditService } from './audit/token-audit.service';
import { BusinessUnitsController } from './business-units/business-units.controller';
import { CustomersClient } from './business-units/customers.client';
import { AUTH_CONFIG } from './config';
import type { AuthConfig } from './config';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import { IdentityModule } from './identity/identity.module';
import { JwksController } from './keys/jwks.controller';
import { SealedSecretsRepository } from './keys/sealed-secrets.repository';
import { secretBoxOf } from './keys/sealing-keys';
import { SealingKeysCheck } from './keys/sealing-keys.service';
import { SecretBox } from './keys/secret-box';
import { MetadataController } from './keys/metadata.controller';
import { SigningKeysRepository } from './keys/signing-keys.repository';
import { SigningKeys } from './keys/signing-keys.service';
import { AUTH_SCHEMA, SCHEMAS } from './migrations/schemas';
import { RevocationsController } from './revocations/revocations.controller';
import { RevocationQuotasRepository } from './revocations/revocation-quotas.repository';
import { RevocationQuotas } from './revocations/revocation-quotas.service';
import { RevocationRights } from './revocations/revocation-rights.service';
import { RevocationTable } from './revocations/revocation-table.service';
import { ConfirmRevocationsJob } from './revocations/confirm-revocations.job';
import { RevocationsRepository } from './revocations/revocations.repository';
import { RevocationsService } from './revocations/revocations.service';
import { RevokedUsers } from './revocations/revoked-users.service';
import { SessionsController } from './sessions/sessions.controller';
import { SessionsRepository } from './sessions/sessions.repository';
import { TokenRejectionFilter } from './token/token-rejection.filter';
import { TokenModule } from './token/token.module';

/**
 * Providers that every feature may inject: the configuration, applications, signing keys, revocations and the
 * audit trail.
 */
@Global()
@Module({})
class CoreModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const exported = [
      ApplicationsRepository,
      ApplicationProofs,
      SigningKeys,
      RevocationsRepository,
      RevocationTable,
      SessionsRepository,
      TokenAuditRepository,
      TokenAuditService,
    ];
    const configuration = [
      { provide: AUTH_CONFIG, useValue: config },
      { provide: SecretBox, useFactory: () => secretBoxOf(config) },
    ];
    return {
      module: CoreModule,
      providers: [
        ...configuration,
        SigningKeysRepository,
        SealedSecretsRepository,
        SealingKeysCheck,
        ...exported,
      ],
      exports: [...configuration, ...exported],
    };
  }
}

const CONTROLLERS = [
  DiagnosticsController,
  JwksController,
  MetadataController,
  RevocationsController,
  SessionsController,
  AccessControlController,
  BusinessUnitsController,
];

const PROVIDERS = [
  ConfirmRevocationsJob,
  CustomersClient,
  RevocationQuotasRepository,
  RevocationQuotas,
  RevocationRights,
  RevocationsService,
  RevokedUsers,
];

@Module({})
export class AppModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const accessTokens = AccessTokensModule.forRootAsync({
      host: ServiceAccessTokenHost,
      inject: [SigningKeys, RevocationTable],
      useFactory: (signingKeys: SigningKeys, revocations: RevocationTable) =>
        accessTokensOptions(config, signingKeys, revocations),
    });
    const identity = IdentityModule.forRoot(config);
    return {
      module: AppModule,
      imports: [
        CoreModule.forRoot(config),
        DatabaseModule.forRoot({
          ...AUTH_SCHEMA.settings,
          // Identity stores without a database of their own are read through this data source.
          entities: SCHEMAS.flatMap(({ settings }) => settings.entities),
          url: config.DATABASE_URL,
          poolSize: config.DATABASE_POOL_SIZE,
        }),
        accessTokens,
        identity,
        TokenModule.forRoot(identity, accessTokens),
      ],
      controllers: CONTROLLERS,
      providers: [...PROVIDERS, { provide: APP_FILTER, useClass: TokenRejectionFilter }],
    };
  }
}

/** Makes this service verify tokens with its own keys and read revocations from its own table. */
function accessTokensOptions(
  config: AuthConfig,
  signingKeys: SigningKeys,
  revocations: RevocationTable,
): AccessTokensOptions {
  const configured = configuredTokens(config);
  return { ...configured, keys: combineKeys(configured.keys, signingKeys.verification), revocations };
}
