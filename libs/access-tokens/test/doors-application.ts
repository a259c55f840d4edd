import { Controller, Get, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Persona } from '@platform/personas';
import { createServiceApplication, loadConfig, serviceConfigShape } from '@platform/service-defaults';
import { z } from 'zod';
import {
  AccessTokensModule,
  CurrentCaller,
  KeyRing,
  Public,
  RequireInternalAdministrator,
  RequirePersona,
  ServiceAccessTokenHost,
} from '../src';
import type { Caller, Revocation } from '../src';
import { AUDIENCE, ISSUER } from './token-builder';
import { testKeys } from './verifier-builder';

@Controller('doors')
class DoorsController {
  @Get('any')
  any(@CurrentCaller() caller: Caller): unknown {
    return { subject: caller.subject, personas: caller.personas };
  }

  @Public()
  @Get('open')
  open(): unknown {
    return { open: true };
  }

  @RequirePersona(Persona.Customer, Persona.Owner)
  @Get('customers-and-owners')
  customersAndOwners(): unknown {
    return {};
  }

  @RequireInternalAdministrator()
  @Get('administrators')
  administrators(): unknown {
    return {};
  }
}

@Public()
@Controller('lobby')
class LobbyController {
  @Get()
  enter(): unknown {
    return {};
  }

  @RequirePersona(Persona.InternalPartner)
  @Get('office')
  office(): unknown {
    return {};
  }
}

/** An application with the keys and revocations that it uses, so that the test can change them. */
export interface DoorsApplication {
  app: NestFastifyApplication;
  keys: KeyRing;
  revocations: Revocation[];
  source: { down: boolean };
}

/**
 * Starts a small service with one route for each kind of access rule. It polls revocations every 10 ms and
 * considers them too old after 1.5 s, which is longer than a busy machine pauses.
 */
export async function startDoorsApplication(): Promise<DoorsApplication> {
  const keys = new KeyRing(testKeys());
  const revocations: Revocation[] = [];
  const source = { down: false };
  const accessTokens = AccessTokensModule.forRootAsync({
    host: ServiceAccessTokenHost,
    useFactory: () => ({
      issuer: ISSUER,
      audience: AUDIENCE,
      keys,
      revocations: {
        changesSince: () =>
          source.down ? Promise.reject(new Error('down')) : Promise.resolve([...revocations]),
      },
      revocationFeed: { pollIntervalMs: 10, maxAgeMs: 1_500 },
    }),
  });
  @Module({ imports: [accessTokens], controllers: [DoorsController, LobbyController] })
  class RootModule {}
  const config = loadConfig(z.object(serviceConfigShape), {
    NODE_ENV: 'test',
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'silent',
    DATABASE_URL: 'postgres://localhost/unused',
  });
  const app = await createServiceApplication({
    name: 'doors',
    title: 'Doors',
    config,
    rootModule: RootModule,
  });
  return { app, keys, revocations, source };
}
