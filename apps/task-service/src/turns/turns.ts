import { type TurnBound, Turns } from '@platform/database';
import { TaskError, type TaskErrorReason } from '../problems/task-error';

/** Creates turns whose refusals are problems of this service. */
export function turnsOf(
  limit: number,
  mayWait: { readonly perShare: number; readonly inAll: number },
  refusals: { readonly ofShare: TaskErrorReason; readonly ofAll: TaskErrorReason },
  onRefusal: (bound: TurnBound) => void,
): Turns {
  return new Turns(limit, mayWait, (bound) => {
    onRefusal(bound);
    const { ofShare, ofAll } = refusals;
    return new TaskError(bound === 'share' ? ofShare : ofAll, { retryAfterSeconds: 1 });
  });
}
