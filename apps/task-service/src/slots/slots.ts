import { type SlotBound, Slots } from '@platform/database';
import { TaskError, type TaskErrorReason } from '../problems/task-error';

/** Creates slots whose refusals are problems of this service. */
export function slotsOf(
  limit: number,
  maxWaiting: { readonly perShare: number; readonly inAll: number },
  refusals: { readonly ofShare: TaskErrorReason; readonly ofAll: TaskErrorReason },
  onRefusal: (bound: SlotBound) => void,
): Slots {
  return new Slots(limit, maxWaiting, (bound) => {
    onRefusal(bound);
    const { ofShare, ofAll } = refusals;
    return new TaskError(bound === 'share' ? ofShare : ofAll, { retryAfterSeconds: 1 });
  });
}
