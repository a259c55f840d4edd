import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { TaskInstanceCompletedEvent } from '@platform/contracts';
import type { Actor } from '@platform/contracts';
import { DAY_MS, MINUTE_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { CallerScope, actorOf, isWithinScope } from '../access/caller-scope.service';
import type { FacilityScope } from '../access/caller-scope.service';
import { withinLimits } from '../fields/instant-limits';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-problem.filter';
import type { CompleteInstanceRequest } from './instance.dto';
import type { InstanceStatus, TaskInstance } from './instance.entity';
import { InstancesRepository } from './instances.repository';
import type { Completion } from './instances.repository';

/** Callers' clocks differ from the database's by this much at most. */
const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;
/** So long before it was made an instance may have been completed: on paper, and entered late. */
const LONGEST_BEFORE_CREATION_MS = 366 * DAY_MS;

/** What the complete command does to an instance in this state: `complete` it; `repeat` the response without a second
 *  event, because it is completed already; `refuse`, because a cancelled instance stays cancelled. */
export function completionOutcome(status: InstanceStatus): 'complete' | 'repeat' | 'refuse' {
  const outcomes = {
    Pending: 'complete',
    Completed: 'repeat',
    Cancelled: 'refuse',
  } as const satisfies Record<InstanceStatus, string>;
  return outcomes[status];
}

interface CompleteCommand {
  readonly taskInstanceId: string;
  readonly request: CompleteInstanceRequest;
  readonly actor: Actor;
  readonly scope: FacilityScope;
}

/** Completes task instances. */
@Injectable()
export class InstancesService {
  constructor(
    private readonly instances: InstancesRepository,
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
  ) {}

  /** Completes an instance and stores its TaskInstanceCompletedEvent in the same transaction, once.
   *  @throws {TaskError} instance-not-found, facility-not-permitted, instance-not-completable, completed-in-the-future,
   *    completed-before-creation, instant-out-of-range */
  async complete(
    taskInstanceId: string,
    request: CompleteInstanceRequest,
    caller: Caller,
  ): Promise<TaskInstance> {
    const scope = await this.scope.of(caller);
    const command = { taskInstanceId, request, actor: actorOf(caller), scope };
    return this.outbound.transaction((manager) => this.completeIn(manager, command));
  }

  private async completeIn(manager: EntityManager, command: CompleteCommand): Promise<TaskInstance> {
    // The row lock makes concurrent commands take turns: the second one finds the instance completed.
    const found = await this.instances.findAndLock(manager, command.taskInstanceId);
    if (!found) throw new TaskError('instance-not-found');
    const { instance, createdAt, now } = found;
    if (!isWithinScope(command.scope, instance.facilityId)) throw new TaskError('facility-not-permitted');
    const outcome = completionOutcome(instance.status);
    if (outcome === 'repeat') return instance;
    if (outcome === 'refuse') throw new TaskError('instance-not-completable');
    const completion = completionOf(command, now);
    checkCompletedAt(completion.completedAt, { now, createdAt });
    await this.instances.markCompleted(manager, instance.taskInstanceId, completion);
    await this.outbound.store(manager, [instanceCompleted(instance, completion.completedAt, command.actor)]);
    return { ...instance, ...completion, status: 'Completed' };
  }
}

function checkCompletedAt(completedAt: Date, { now, createdAt }: { now: Date; createdAt: Date }): void {
  const atMs = withinLimits(completedAt).getTime();
  if (atMs > now.getTime() + CLOCK_TOLERANCE_MS) throw new TaskError('completed-in-the-future');
  if (atMs < createdAt.getTime() - LONGEST_BEFORE_CREATION_MS)
    throw new TaskError('completed-before-creation');
}

function completionOf({ request, actor }: CompleteCommand, now: Date): Completion {
  return {
    completedAt: request.completedAt === null ? now : new Date(request.completedAt),
    completedByPersonId: actor.personId,
    completedByName: actor.name,
    completedByPersona: actor.persona,
    notes: request.notes,
  };
}

function instanceCompleted(
  { taskInstanceId, scheduleId, facilityId, dueAt }: TaskInstance,
  completedAt: Date,
  completedBy: Actor,
): OutboundEvent {
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
