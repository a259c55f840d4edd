import { createParamDecorator } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import type { SettingName } from '@platform/setting-names';
import type { FastifyRequest } from 'fastify';
import type { SettingKey } from './setting-key';
import { bulkWriteHeadersOf, jsonBodyOf, keyOf, subsystemOf } from './setting-request';
import type { WriteHeaders } from './write-request';

/** Injects the subsystem in the path. @throws {ProblemException} as `subsystemOf` */
export const Subsystem = createParamDecorator((_data: unknown, context: ExecutionContext): SettingName =>
  subsystemOf(requestOf(context)),
);

/** Injects the setting in the path. @throws {ProblemException} as `keyOf` */
export const KeyOfSetting = createParamDecorator((_data: unknown, context: ExecutionContext): SettingKey =>
  keyOf(requestOf(context)),
);

/** Injects the parsed body. @throws {ProblemException} as `jsonBodyOf` */
export const JsonBody = createParamDecorator((_data: unknown, context: ExecutionContext): unknown =>
  jsonBodyOf(requestOf(context)),
);

/** Injects the headers of a write of many settings. @throws {ProblemException} as `bulkWriteHeadersOf` */
export const HeadersOfBulkWrite = createParamDecorator(
  (_data: unknown, context: ExecutionContext): WriteHeaders => bulkWriteHeadersOf(requestOf(context)),
);

function requestOf(context: ExecutionContext): FastifyRequest {
  // Faster than switchToHttp(), which creates three functions per call.
  return context.getArgByIndex<FastifyRequest>(0);
}
