import { TaskProblemResponse } from '../problems/task-problem.filter';

/**
 * Documents that a change waits for a turn in `ChangeSlots`.
 * @param instance the path of the documented example
 */
export const BoundedChange = (instance: string): MethodDecorator =>
  TaskProblemResponse(
    'Too many changes of it, or of the same caller, are under way. `Retry-After` tells when to ask again.',
    instance,
    'too-many-changes-at-once',
  );
