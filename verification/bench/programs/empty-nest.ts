/** A minimal Nest application on Fastify: one route, no dependency. */
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';

@Controller()
class ReadyController {
  @Get('ready')
  ready(): string {
    return 'ready';
  }
}

@Module({ controllers: [ReadyController] })
class EmptyModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create<NestFastifyApplication>(EmptyModule, new FastifyAdapter());
  await app.listen(Number(process.env['PORT']), '127.0.0.1');
}

void main();
