import { Injectable, Logger, Module } from '@nestjs/common';
import type {
  DynamicModule,
  InjectionToken,
  ModuleMetadata,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleInit,
  OptionalFactoryDependency,
  Type,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { RevocationFeed } from '../revocations/revocation-feed';
import { AccessTokenValidator } from '../verification/access-token-validator';
import type { AccessTokensOptions } from '../verification/access-token-validator';
import { AccessTokenVerifier } from '../verification/access-token-verifier';
import { RouteAccess } from './access-rules';
import { AccessTokenHost } from './access-token-host';
import { AccessTokenGuard } from './access-token.guard';
import { AccessTokenStrategy } from './access-token.strategy';

/** Options of `AccessTokensModule.forRootAsync`. `useFactory` receives the providers listed in `inject`. */
interface AccessTokensAsyncOptions<Dependencies extends unknown[] = never[]> {
  imports?: ModuleMetadata['imports'];
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useFactory: (...dependencies: Dependencies) => AccessTokensOptions | Promise<AccessTokensOptions>;
  /**
   * Customises refusals and observes the revocation feed. Default: `AccessTokenHost`, which suits any Nest
   * application.
   */
  host?: Type<AccessTokenHost>;
}

const ACCESS_TOKENS_OPTIONS = Symbol('AccessTokensOptions');

/** Runs the feed from module initialisation until after the HTTP server has closed. */
@Injectable()
class RevocationFeedLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private firstLoad: Promise<void> | null = null;

  constructor(
    private readonly feed: RevocationFeed,
    private readonly host: AccessTokenHost,
  ) {}

  /** Starts the first load without awaiting it, so that the rest of the start-up runs in parallel. */
  onModuleInit(): void {
    this.host.watch(this.feed);
    this.firstLoad = this.feed.start();
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.firstLoad;
  }

  onApplicationShutdown(): Promise<void> {
    return this.feed.stop();
  }
}

/** Installs a global guard: every route needs a valid access token unless it is `@Public()`. */
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
        { provide: AccessTokenHost, useClass: options.host ?? AccessTokenHost },
        {
          provide: AccessTokenValidator,
          inject: [ACCESS_TOKENS_OPTIONS, AccessTokenHost],
          useFactory: createValidator,
        },
        {
          provide: RevocationFeed,
          inject: [AccessTokenValidator],
          useFactory: ({ revocations }: AccessTokenValidator) => revocations,
        },
        {
          provide: AccessTokenVerifier,
          inject: [AccessTokenValidator],
          useFactory: ({ verifier }: AccessTokenValidator) => verifier,
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

function createValidator(options: AccessTokensOptions, { clock }: AccessTokenHost): AccessTokenValidator {
  const logger = new Logger(RevocationFeed.name);
  return new AccessTokenValidator({
    ...(clock === undefined ? {} : { clock }),
    ...options,
    onOutage: (error) => {
      if (error === null) logger.log('revocations are up to date again');
      else
        logger.warn('revocations cannot be read; tokens are refused once they are too old', { err: error });
    },
  });
}
