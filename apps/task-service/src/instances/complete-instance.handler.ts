import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { TaskInstanceCompletedEvent } from '@platform/contracts';
import { MINUTE_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { actorOf } from '../access/actor';
import { CallerScope } from '../access/caller-scope.service';
import { isWithinScope } from '../access/facility-scope';
import type { FacilityScope } from '../access/facility-scope';
import { TaskError } from '../problems/task-error';
import { outboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import type { TaskInstance } from './instance';
import type { CompleteInstanceRequest } from './instance.dto';
import { completionOutcome } from './instance-status';
import { findAndLockInstance } from './find-and-lock-instance.query';
import { markInstanceCompleted } from './mark-instance-completed.query';

/** Callers' clocks differ from the database's by this much at most. */
const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;

/** Completes a task instance and stores its TaskInstanceCompletedEvent in the same transaction, once. */
@Injectable()
export class CompleteInstance {
  constructor(
    private readonly outbound: OutboundProxy,
    private readonly callerScope: CallerScope,
  ) {}

  /** @throws {TaskError} instance-not-found, facility-not-permitted, instance-not-completable, completed-in-the-future */
  async execute(
    taskInstanceId: string,
    request: CompleteInstanceRequest,
    caller: Caller,
  ): Promise<TaskInstance> {
    const scope = await this.callerScope.of(caller);
    return this.outbound.transaction((manager) =>
      this.complete(manager, { taskInstanceId, request, caller, scope }),
    );
  }

  private async complete(
    manager: EntityManager,
    command: {
      taskInstanceId: string;
      request: CompleteInstanceRequest;
      caller: Caller;
      scope: FacilityScope;
    },
  ): Promise<TaskInstance> {
    // The row lock makes concurrent commands take turns: the second one finds the instance completed.
    const found = await findAndLockInstance(manager, command.taskInstanceId);
    if (!found) throw new TaskError('instance-not-found');
    const { instance, now } = found;
    if (!isWithinScope(command.scope, instance.facilityId)) throw new TaskError('facility-not-permitted');
    const outcome = completionOutcome(instance.status);
    if (outcome === 'repeat') return instance;
    if (outcome === 'refuse') throw new TaskError('instance-not-completable');
    const { completedAt, notes } = command.request;
    const completion = {
      completedAt: completedAt === null ? now : new Date(completedAt),
      completedBy: actorOf(command.caller),
      notes,
    };
    if (completion.completedAt.getTime() > now.getTime() + CLOCK_TOLERANCE_MS)
      throw new TaskError('completed-in-the-future');
    await markInstanceCompleted(manager, instance.taskInstanceId, completion);
    const completed: TaskInstance = { ...instance, ...completion, status: 'Completed' };
    await this.outbound.store(manager, [instanceCompleted(completed, completion)]);
    return completed;
  }
}

function instanceCompleted(
  { taskInstanceId, scheduleId, facilityId, dueAt }: TaskInstance,
  { completedAt, completedBy }: { completedAt: Date; completedBy: ReturnType<typeof actorOf> },
): ReturnType<typeof outboundEvent> {
  return outboundEvent(
    TaskInstanceCompletedEvent,
    {
      taskInstanceId,
      scheduleId,
      facilityId,
      dueAtUtc: dueAt.toISOString(),
      completedAtUtc: completedAt.toISOString(),
      completedBy,
    },
    facilityId,
  );
}
