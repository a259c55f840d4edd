import { openSpan, traceOf } from '@platform/service-defaults';
import type { TraceContext } from '@platform/service-defaults';
import type { DueTrigger } from './acquire-due-triggers.query';
import { JOB_NAME } from './trigger';

/** Opens the span of one fire. It begins a trace of its own: a trigger fires for years, and a trace that never ends shows nothing.
 *  It links to the trace in which the trigger was created or last changed. */
export function openFireSpan({ facilityId, originTrace }: DueTrigger): TraceContext {
  const origin = originTrace === null ? null : traceOf({ traceparent: originTrace });
  return openSpan({
    name: `fire ${JOB_NAME}`,
    kind: 'internal',
    parent: null,
    attributes: { 'task.facility.id': facilityId },
    links: origin === null ? [] : [origin],
  });
}
