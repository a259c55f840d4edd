import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { type Actor, TaskInstanceCancelledEvent, TaskInstanceCompletedEvent } from '@platform/contracts';
import { DAY_MS, MINUTE_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { actorOf, CallerScope, type FacilityScope, isWithinScope } from '../access/caller-scope.service';
import { MANAGERS, PERFORMERS } from '../access/route-personas';
import { withinLimits } from '../fields/fields';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-error';
import { ChangeSlots } from '../slots/change-slots.service';
import type { CancelInstanceRequest, CompleteInstanceRequest } from './instance.dto';
import { INSTANCE_TRANSITIONS, type TaskInstance } from './instance.entity';
import { type Completion, InstancesRepository, type LockedInstance } from './instances.repository';

/** Maximum difference between a caller's clock and the database's. */
const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;
/**
 * Maximum time from `completedAt` to the creation of the instance: a task may be recorded on paper and
 * entered late.
 */
const LONGEST_BEFORE_CREATION_MS = 366 * DAY_MS;

interface Command<Request> {
  readonly taskInstanceId: string;
  readonly request: Request;
  readonly actor: Actor;
  readonly scope: FacilityScope;
}

@Injectable()
export class InstancesService {
  constructor(
    private readonly instances: InstancesRepository,
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
    private readonly slots: ChangeSlots,
  ) {}

  /**
   * Completes an instance and stores its TaskInstanceCompletedEvent in the same transaction, once.
   * @throws {TaskError} instance-not-found, facility-not-permitted, instance-not-completable,
   * completed-in-the-future, completed-before-creation, instant-out-of-range, too-many-changes-at-once,
   * changes-busy
   */
  async complete(
    taskInstanceId: string,
    request: CompleteInstanceRequest,
    caller: Caller,
  ): Promise<TaskInstance> {
    const scope = await this.scope.of(caller, PERFORMERS);
    await this.requireAccess(taskInstanceId, scope, caller);
    const command = { taskInstanceId, request, actor: actorOf(caller), scope };
    const complete = () => this.outbound.transaction((manager) => this.completeIn(manager, command));
    return this.slots.run(taskInstanceId, caller, complete);
  }

  /**
   * Cancels an instance for good and stores its TaskInstanceCancelledEvent in the same transaction, once.
   * Nothing is generated for its instant again.
   * @throws {TaskError} instance-not-found, facility-not-permitted, instance-not-cancellable,
   * too-many-changes-at-once, changes-busy
   */
  async cancel(
    taskInstanceId: string,
    request: CancelInstanceRequest,
    caller: Caller,
  ): Promise<TaskInstance> {
    const scope = await this.scope.of(caller, MANAGERS);
    await this.requireAccess(taskInstanceId, scope, caller);
    const command = { taskInstanceId, request, actor: actorOf(caller), scope };
    const cancel = () => this.outbound.transaction((manager) => this.cancelIn(manager, command));
    return this.slots.run(taskInstanceId, caller, cancel);
  }

  /**
   * Checks access before the command waits for the row lock, so that callers without access do not delay
   * others.
   */
  private async requireAccess(taskInstanceId: string, scope: FacilityScope, caller: Caller): Promise<void> {
    if (scope === 'all') return;
    const facilityId = await this.slots.lookUp(caller, () => this.instances.facilityOf(taskInstanceId));
    if (facilityId === null) throw new TaskError('instance-not-found');
    if (!isWithinScope(scope, facilityId)) throw new TaskError('facility-not-permitted');
  }

  private async completeIn(
    manager: EntityManager,
    command: Command<CompleteInstanceRequest>,
  ): Promise<TaskInstance> {
    const { instance, createdAt, now } = await this.lock(manager, command);
    const status = INSTANCE_TRANSITIONS[instance.status].complete;
    if (status === undefined) throw new TaskError('instance-not-completable');
    if (status === instance.status) return instance;
    const completion = completionOf(command, now);
    checkCompletedAt(completion.completedAt, { now, createdAt });
    await this.instances.markCompleted(manager, instance.taskInstanceId, completion);
    await this.outbound.store(manager, [instanceCompleted(instance, completion.completedAt, command.actor)]);
    return { ...instance, ...completion, status };
  }

  private async cancelIn(
    manager: EntityManager,
    { request, actor, ...command }: Command<CancelInstanceRequest>,
  ): Promise<TaskInstance> {
    const { instance, now } = await this.lock(manager, command);
    const status = INSTANCE_TRANSITIONS[instance.status].cancel;
    if (status === undefined) throw new TaskError('instance-not-cancellable');
    if (status === instance.status) return instance;
    const cancellation = {
      cancelledAt: now,
      cancelledByPersonId: actor.personId,
      cancelledByName: actor.name,
      cancelledByPersona: actor.persona,
      cancellationReason: request.reason,
    };
    await this.instances.markCancelled(manager, instance.taskInstanceId, cancellation);
    await this.outbound.store(manager, [instanceCancelled(instance, now, actor)]);
    return { ...instance, ...cancellation, cancellationCause: 'Person', status };
  }

  /**
   * Locks the instance, so that concurrent commands run one after the other and each sees the result of the
   * previous one.
   */
  private async lock(
    manager: EntityManager,
    { taskInstanceId, scope }: Pick<Command<unknown>, 'taskInstanceId' | 'scope'>,
  ): Promise<LockedInstance> {
    const found = await this.instances.findAndLock(manager, taskInstanceId);
    if (!found) throw new TaskError('instance-not-found');
    if (!isWithinScope(scope, found.instance.facilityId)) throw new TaskError('facility-not-permitted');
    return found;
  }
}

function checkCompletedAt(completedAt: Date, { now, createdAt }: { now: Date; createdAt: Date }): void {
  const atMs = withinLimits(completedAt).getTime();
  if (atMs > now.getTime() + CLOCK_TOLERANCE_MS) throw new TaskError('completed-in-the-future');
  if (atMs < createdAt.getTime() - LONGEST_BEFORE_CREATION_MS)
    throw new TaskError('completed-before-creation');
}

function completionOf({ request, actor }: Command<CompleteInstanceRequest>, now: Date): Completion {
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

function instanceCancelled(
  { taskInstanceId, scheduleId, facilityId, dueAt }: TaskInstance,
  cancelledAt: Date,
  changedBy: Actor,
): OutboundEvent {
  const [dueAtUtc, changedAtUtc] = [dueAt.toISOString(), cancelledAt.toISOString()];
  return outboundEvent(
    TaskInstanceCancelledEvent,
    { taskInstanceId, scheduleId, facilityId, dueAtUtc, changedAtUtc, changedBy },
    facilityId,
  );
}
