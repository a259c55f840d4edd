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
import { ApplicationsModule } from './applications/applications.module';
import { TokenAuditRepository } from './audit/token-audit.repository';
import { TokenAuditService } from './audit/token-audit.service';
import { TokenMetrics } from './audit/token-metrics.service';
import { BusinessUnitsController } from './business-units/business-units.controller';
import { CustomersClient } from './business-units/customers.client';
import { AUTH_CONFIG } from './config';
import type { AuthConfig } from './config';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import { TokenRejectionFilter } from './error-responses/token-rejection.filter';
import { IdentityModule } from './identity/identity.module';
import { PasswordsModule } from './identity/passwords/passwords.module';
import { IntrospectionModule } from './introspection/introspection.module';
import { JwksController } from './keys/jwks.controller';
import { MetadataController } from './keys/metadata.controller';
import { SealedSecretsRepository } from './keys/sealed-secrets.repository';
import { secretBoxOf } from './keys/sealing-keys';
import { SealingKeysCheck } from './keys/sealing-keys.service';
import { SecretBox } from './keys/secret-box';
import { SigningKeysRepository } from './keys/signing-keys.repository';
import { SigningKeys } from './keys/signing-keys.service';
import { MeController } from './me/me.controller';
import { AUTH_SCHEMA, SCHEMAS, STORE_SCHEMAS } from './migrations/schemas';
import { PurgeExpiredJob } from './purges/purge-expired.job';
import { ConfirmRevocationsJob } from './revocations/confirm-revocations.job';
import { RevocationQuotasRepository } from './revocations/revocation-quotas.repository';
import { RevocationQuotas } from './revocations/revocation-quotas.service';
import { RevocationRights } from './revocations/revocation-rights.service';
import { RevocationTable } from './revocations/revocation-table.service';
import { RevocationsController } from './revocations/revocations.controller';
import { RevocationsRepository } from './revocations/revocations.repository';
import { RevocationsService } from './revocations/revocations.service';
import { RevokedUsers } from './revocations/revoked-users.service';
import { SessionsController } from './sessions/sessions.controller';
import { SessionsRepository } from './sessions/sessions.repository';
import { TokenFlowsModule } from './token/flows/token-flows.module';
import { TokenModule } from './token/token.module';

/**
 * Providers that every feature may inject: the configuration, signing keys, revocations and the audit trail.
 */
@Global()
@Module({})
class CoreModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const exported = [
      SigningKeys,
      RevocationsRepository,
      RevocationTable,
      TokenAuditRepository,
      TokenAuditService,
      TokenMetrics,
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
  MeController,
  RevocationsController,
  SessionsController,
  AccessControlController,
  BusinessUnitsController,
];

const PROVIDERS = [
  ConfirmRevocationsJob,
  CustomersClient,
  PurgeExpiredJob,
  RevocationQuotasRepository,
  RevocationQuotas,
  RevocationRights,
  RevocationsService,
  RevokedUsers,
  SessionsRepository,
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
    const identity = IdentityModule.forRoot(config, STORE_SCHEMAS);
    const token = TokenModule.forRoot(identity);
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
        ApplicationsModule,
        TokenFlowsModule.forRoot(accessTokens, identity, PasswordsModule.forRoot(identity), token),
        IntrospectionModule.forRoot(accessTokens, token),
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
