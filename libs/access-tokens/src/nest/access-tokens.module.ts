import { Injectable, Logger, Module } from '@nestjs/common';
import type {
  DynamicModule,
  InjectionToken,
  ModuleMetadata,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleInit,
  OptionalFactoryDependency,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { CLOCK, HealthRegistry, Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { KeySource } from '../keys/keys';
import { RevocationFeed } from '../revocations/revocation-feed';
import type { RevocationFeedOptions } from '../revocations/revocation-feed';
import type { RevocationSource } from '../revocations/revocation-index';
import { AccessTokenVerifier } from '../token/access-token-verifier';
import type { LegacyIssuer } from '../token/access-token-verifier';
import { RouteAccess } from './access-rules';
import { AccessTokenGuard } from './access-token.guard';
import { AccessTokenStrategy } from './access-token.strategy';

/** What a service says about the tokens it accepts. */
export interface AccessTokensOptions {
  issuer: string;
  audience: string;
  keys: KeySource;
  revocations: RevocationSource;
  clock?: Clock;
  legacyIssuers?: readonly LegacyIssuer[];
  /** Intervals and limits of the revocation feed; see their defaults there. */
  revocationFeed?: Pick<RevocationFeedOptions, 'pollIntervalMs' | 'maxAgeMs' | 'overlapMs' | 'pollTimeoutMs'>;
}

/** How `AccessTokensModule.forRootAsync` gets its options: `useFactory` is called with what `inject` names. */
interface AccessTokensAsyncOptions<Dependencies extends unknown[] = never[]> {
  imports?: ModuleMetadata['imports'];
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useFactory: (...dependencies: Dependencies) => AccessTokensOptions | Promise<AccessTokensOptions>;
}

const ACCESS_TOKENS_OPTIONS = Symbol('AccessTokensOptions');

/** Ties the feed to the process: polls from boot until HTTP has closed, and decides readiness. */
@Injectable()
class RevocationFeedLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private firstLoad: Promise<void> | null = null;

  constructor(
    private readonly feed: RevocationFeed,
    health: HealthRegistry,
    metrics: Metrics,
  ) {
    metrics.sampledGauge(
      'revocation_feed_age_seconds',
      'Time since the last complete answer about revocations; tokens are refused when it is too old',
      [],
      () => [{ labels: {}, value: feed.ageMs / SECOND_MS }],
    );
    metrics.sampledGauge('revocation_feed_entries', 'Revocations known', [], () => [
      { labels: {}, value: feed.size },
    ]);
    // eslint-disable-next-line @typescript-eslint/require-await -- throwing inside makes it a rejection
    health.addReadinessCheck({ name: 'revocations', check: async () => feed.assertFresh() });
  }

  /** Not awaited yet: the rest of the start goes on while auth-service answers. */
  onModuleInit(): void {
    this.firstLoad = this.feed.start();
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.firstLoad;
  }

  onApplicationShutdown(): Promise<void> {
    return this.feed.stop();
  }
}

/** Installs the global guard: every route needs a valid access token unless it is `@Public()`. */
@Module({})
export class AccessTokensModule {
  static forRootAsync<Dependencies extends unknown[]>(
    options: AccessTokensAsyncOptions<Dependencies>,
  ): DynamicModule {
    return {
      module: AccessTokensModule,
      imports: options.imports ?? [],
      providers: [
        { provide: ACCESS_TOKENS_OPTIONS, inject: options.inject ?? [], useFactory: options.useFactory },
        { provide: RevocationFeed, inject: [ACCESS_TOKENS_OPTIONS, CLOCK], useFactory: createFeed },
        {
          provide: AccessTokenVerifier,
          inject: [ACCESS_TOKENS_OPTIONS, RevocationFeed, CLOCK],
          useFactory: createVerifier,
        },
        RevocationFeedLifecycle,
        AccessTokenStrategy,
        RouteAccess,
        { provide: APP_GUARD, useClass: AccessTokenGuard },
      ],
      exports: [AccessTokenVerifier, RevocationFeed],
    };
  }
}

function createFeed(options: AccessTokensOptions, clock: Clock): RevocationFeed {
  const logger = new Logger(RevocationFeed.name);
  return new RevocationFeed({
    source: options.revocations,
    clock: options.clock ?? clock,
    ...options.revocationFeed,
    onOutage: (error) => {
      if (error === null) logger.log('revocations are up to date again');
      else
        logger.warn('revocations cannot be read; tokens are refused once they are too old', { err: error });
    },
  });
}

function createVerifier(
  options: AccessTokensOptions,
  feed: RevocationFeed,
  clock: Clock,
): AccessTokenVerifier {
  return new AccessTokenVerifier({ ...options, clock: options.clock ?? clock, revocations: feed });
}
