import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { runAfterCommit } from '../outbound/after-commit.service';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-error';
import { ChangeSlots } from '../slots/change-slots.service';
import { SchedulerService } from './scheduler.service';
import type { Trigger } from './trigger.entity';
import { TriggersRepository } from './triggers.repository';

/**
 * Pauses and resumes triggers. Occurrences missed during a pause are handled like late ones when it ends: up
 * to 1.5 h late every missed occurrence fires, later one misfire replaces them.
 */
@Injectable()
export class TriggersService {
  constructor(
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
    private readonly slots: ChangeSlots,
  ) {}

  /**
   * Pauses a trigger. Idempotent.
   * @throws {TaskError} trigger-not-found, too-many-changes-at-once, changes-busy
   */
  pause(facilityId: number, caller: Caller): Promise<Trigger> {
    return this.setStateInSlot(facilityId, 'PAUSED', caller);
  }

  /**
   * Resumes a trigger. Idempotent.
   * @throws {TaskError} trigger-not-found, too-many-changes-at-once, changes-busy
   */
  resume(facilityId: number, caller: Caller): Promise<Trigger> {
    return this.setStateInSlot(facilityId, 'WAITING', caller);
  }

  private setStateInSlot(facilityId: number, state: 'PAUSED' | 'WAITING', caller: Caller): Promise<Trigger> {
    return this.slots.run(`trigger ${String(facilityId)}`, caller, () => this.setState(facilityId, state));
  }

  private setState(facilityId: number, state: 'PAUSED' | 'WAITING'): Promise<Trigger> {
    return this.outbound.transaction(async (manager) => {
      const trigger = await this.triggers.findAndLock(manager, facilityId);
      if (!trigger) throw new TaskError('trigger-not-found');
      runAfterCommit(manager, 'scheduler', () => {
        this.scheduler.wake();
      });
      // A trigger in ERROR stays there until it is scheduled with valid settings.
      if (trigger.state === 'ERROR' || trigger.state === state) return trigger;
      return this.triggers.setState(manager, trigger, state);
    });
  }
}
