import { Injectable } from '@nestjs/common';
import { TaskError } from '../problems/task-error';
import { runAfterCommit } from '../outbound/after-commit.service';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { SchedulerService } from './scheduler.service';
import { setTriggerState } from './set-trigger-state.query';
import type { Trigger } from './trigger';

/** Pauses and resumes triggers. What came due during a pause is judged like any lateness when it ends: up to 1.5 h every
 *  missed occurrence fires, beyond that one misfire. */
@Injectable()
export class PauseTrigger {
  constructor(
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
  ) {}

  /** Repeating it changes nothing. @throws {TaskError} trigger-not-found */
  pause(facilityId: number): Promise<Trigger> {
    return this.setState(facilityId, 'PAUSED');
  }

  /** Repeating it changes nothing. @throws {TaskError} trigger-not-found */
  resume(facilityId: number): Promise<Trigger> {
    return this.setState(facilityId, 'WAITING');
  }

  private setState(facilityId: number, state: 'PAUSED' | 'WAITING'): Promise<Trigger> {
    return this.outbound.transaction(async (manager) => {
      const trigger = await setTriggerState(manager, facilityId, state);
      if (!trigger) throw new TaskError('trigger-not-found');
      runAfterCommit(manager, 'scheduler', () => {
        this.scheduler.wake();
      });
      return trigger;
    });
  }
}
