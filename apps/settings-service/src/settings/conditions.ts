import { entityTagsOf } from '@platform/service-defaults';
import type { Preconditions } from '@platform/service-defaults';
import type { FastifyRequest } from 'fastify';

/**
 * Parses If-Match and If-None-Match.
 * @throws {ProblemException} 400 if one is malformed: ignoring a condition could lose a write
 */
export function conditionsOf({ headers }: Pick<FastifyRequest, 'headers'>): Preconditions {
  return {
    ifMatch: entityTagsOf('If-Match', headers['if-match']),
    ifNoneMatch: entityTagsOf('If-None-Match', headers['if-none-match']),
  };
}
