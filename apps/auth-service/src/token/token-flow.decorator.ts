import { Controller, Get, Header, HttpCode, Post, UseGuards, applyDecorators } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { AddressRateGuard } from '../rate-limits/rate-limits.service';

/** Marks a token flow: an anonymous controller under /auth/token, limited in rate and audited. */
export function TokenFlowController(): ClassDecorator {
  return applyDecorators(Controller('auth/token'), Public(), UseGuards(AddressRateGuard));
}

/** The route of a token flow: POST, 200, never stored by a cache. */
export function TokenPost(path: string): MethodDecorator {
  return applyDecorators(Post(path), HttpCode(200), Header('Cache-Control', 'no-store'));
}

/** The route of a token flow that is a GET. */
export function TokenGet(path: string): MethodDecorator {
  return applyDecorators(Get(path), Header('Cache-Control', 'no-store'));
}
