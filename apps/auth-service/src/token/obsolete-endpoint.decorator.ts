import { Header, applyDecorators } from '@nestjs/common';

/** 2026-01-01, as RFC 9745 writes it. */
const DEPRECATED_SINCE = '@1767225600';

/** Says in the headers of every answer, refusals included, that an endpoint is obsolete and what replaces it. */
export function ObsoleteEndpoint(successor: string): MethodDecorator {
  return applyDecorators(
    Header('Deprecation', DEPRECATED_SINCE),
    Header('Link', `<${successor}>; rel="successor-version"`),
  );
}
