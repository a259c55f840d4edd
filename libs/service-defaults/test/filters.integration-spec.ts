import { Catch, Controller, Get, Module } from '@nestjs/common';
import { APP_FILTER, ExternalContextCreator } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { fixedClock } from '@platform/time';
import type { Clock } from '@platform/time';
import request from 'supertest';
import { CLOCK, createServiceApplication, ProblemDetailsFilter } from '../src';
import type { Problem } from '../src';
import { stoppingConfig } from './stopping-app';

class OutOfStock extends Error {}

@Catch()
class ShopFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    return error instanceof OutOfStock ? { status: 409, detail: 'Sold out.' } : null;
  }
}

@Controller()
class ShopController {
  @Get('goods')
  goods(): never {
    throw new OutOfStock();
  }

  @Get('bug')
  bug(): never {
    throw new Error('bug');
  }

  consume(): never {
    throw new OutOfStock();
  }
}

@Module({ controllers: [ShopController], providers: [{ provide: APP_FILTER, useClass: ShopFilter }] })
class ShopModule {}

describe("an app's own filter", () => {
  let app: NestFastifyApplication;

  beforeAll(async () => {
    const clock = fixedClock('2026-01-05T10:00:00Z');
    app = await createServiceApplication({
      name: 'shop',
      title: 'Shop',
      config: stoppingConfig(),
      rootModule: ShopModule,
      clock,
    });
  });

  afterAll(() => app.close());

  it.each([
    ['/goods', 409, 'Sold out.'],
    ['/bug', 500, undefined],
    ['/nothing', 404, 'There is nothing at this address.'],
  ])(
    'takes precedence over the default filter and inherits its responses (%s)',
    async (path, status, detail) => {
      const response = await request(app.getHttpServer()).get(path);
      expect(response.status).toBe(status);
      expect(response.headers['content-type']).toMatch('application/problem+json');
      expect(response.body.detail).toBe(detail);
    },
  );

  it('rethrows the errors of message handlers', async () => {
    const controller = app.get(ShopController);
    const creator = app.get(ExternalContextCreator);
    const consume = creator.create(
      controller,
      () => controller.consume(),
      'consume',
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      'rmq',
    );
    await expect(consume({})).rejects.toThrow(OutOfStock);
  });

  it('uses the given clock', () => {
    expect(app.get<Clock>(CLOCK).now().toISOString()).toBe('2026-01-05T10:00:00.000Z');
  });
});
