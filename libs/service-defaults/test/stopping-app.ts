import { Controller, Get, Injectable, Module } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { z } from 'zod';
import { createServiceApplication, loadConfig, serviceConfigShape, ShutdownRegistry } from '../src';
import type { ServiceConfig } from '../src';

/** Records the events of a stop, in order, and holds the response that a test releases. */
@Injectable()
export class Story implements OnModuleInit, OnApplicationShutdown {
  readonly events: string[] = [];
  release: () => void = () => undefined;
  readonly held = new Promise<void>((resolve) => (this.release = resolve));

  constructor(private readonly shutdown: ShutdownRegistry) {}

  onModuleInit(): void {
    this.shutdown.addDrainHook({ name: 'broken', drain: () => Promise.reject(new Error('cannot drain')) });
    this.shutdown.addDrainHook({
      name: 'consumers',
      drain: () => {
        this.events.push('drained');
        return Promise.resolve();
      },
    });
  }

  onApplicationShutdown(): void {
    this.events.push('database closed');
  }
}

@Controller()
class StoryController {
  constructor(private readonly story: Story) {}

  @Get('quick')
  quick(): object {
    return { quick: true };
  }

  @Get('polled')
  polled(): object {
    return {};
  }

  @Get('held')
  async held(): Promise<object> {
    this.story.events.push('begun');
    await this.story.held;
    this.story.events.push('responded');
    return { held: true };
  }
}

@Module({ controllers: [StoryController], providers: [Story] })
class StoryModule {}

export function stoppingConfig(env: Record<string, string> = {}): Readonly<ServiceConfig> {
  return loadConfig(z.object(serviceConfigShape), {
    NODE_ENV: 'test',
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'silent',
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    ...env,
  });
}

export const stoppingDefinition = {
  name: 'stopping',
  title: 'Stopping',
  rootModule: StoryModule,
  polledRoutes: ['/polled'],
};

export function createStoppingApp(): Promise<NestFastifyApplication> {
  return createServiceApplication({ ...stoppingDefinition, config: stoppingConfig() });
}
