import { TaskInstanceGenerationRequested } from '@platform/contracts';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import type { DueFire } from './due-fire';

/** The message that has a facility's instances generated: because its trigger fired, or, without a fire, because something changed or
 *  somebody asked for it. */
export function generationRequested(
  facilityId: number,
  { firedAt, fire }: { firedAt: Date; fire?: Pick<DueFire, 'scheduledAt' | 'misfired' | 'missedCount'> },
): OutboundEvent {
  return outboundEvent(
    TaskInstanceGenerationRequested,
    {
      facilityId,
      scheduledFireTimeUtc: (fire?.scheduledAt ?? firedAt).toISOString(),
      fireTimeUtc: firedAt.toISOString(),
      misfired: fire?.misfired ?? false,
      missedCount: fire?.missedCount ?? 0,
    },
    facilityId,
  );
}
