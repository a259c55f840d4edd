import { Controller, Get, Inject, Logger, Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { tracedFetch, withoutTrace } from '../src';
import type { ServiceDefinition } from '../src';
import { stoppingConfig } from './stopping-app';

const DOWNSTREAM = Symbol('DOWNSTREAM');

@Controller()
class TracedController {
  constructor(@Inject(DOWNSTREAM) private readonly downstream: string) {}

  @Get('people/:name')
  async call(): Promise<object> {
    new Logger('Traced').log('calling');
    const response = await tracedFetch(`${this.downstream}/people/jane?token=sesame`, {
      headers: { accept: 'application/json' },
    });
    return { status: response.status };
  }

  /** Sends a request outside any trace, as a timer would. */
  @Get('poll')
  async poll(): Promise<object> {
    const response = await withoutTrace(() => tracedFetch(this.downstream));
    return { status: response.status };
  }

  @Get('broken')
  broken(): never {
    throw new Error('broken by jane');
  }

  @Get('quick')
  quick(): object {
    return { quick: true };
  }
}

@Module({})
class TracedModule {
  static forRoot(downstream: string): DynamicModule {
    return {
      module: TracedModule,
      controllers: [TracedController],
      providers: [{ provide: DOWNSTREAM, useValue: downstream }],
    };
  }
}

/** Returns the definition of a service whose HTTP client calls DOWNSTREAM_URL. */
export function tracedDefinition(env: NodeJS.ProcessEnv): ServiceDefinition {
  const { DOWNSTREAM_URL = '', ...rest } = env;
  return {
    name: 'traced',
    title: 'Traced',
    config: stoppingConfig(rest as Record<string, string>),
    rootModule: TracedModule.forRoot(DOWNSTREAM_URL),
  };
}
