import { TaskProblemResponse } from '../problems/task-problem.filter';

/**
 * Documents that a change waits for a slot of `ChangeSlots`.
 * @param instance path of the documented example
 */
export const BoundedChange = (instance: string): MethodDecorator =>
  TaskProblemResponse(
    'Too many changes of the resource, or by the same caller, are under way. `Retry-After` says when to retry.',
    instance,
    'too-many-changes-at-once',
  );
