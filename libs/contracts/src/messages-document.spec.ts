import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_CONTRACTS } from './all-contracts';
import { messagesDocument } from './messages-document';

const FILE = join(__dirname, '../../../docs/messages.md');

describe('docs/messages.md', () => {
  it('is up to date with the contracts', () => {
    const document = messagesDocument(ALL_CONTRACTS);
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(FILE, document);
    expect(readFileSync(FILE, 'utf8')).toBe(document);
  });
});

describe('ALL_CONTRACTS', () => {
  it('holds every message of the task messaging spec and every added message, each once', () => {
    const names = ALL_CONTRACTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.toSorted()).toEqual([
      'IBusinessUnitChangeV1',
      'IScheduleCreatedEvent',
      'IScheduleRecurringTaskInstanceGenerationRequest',
      'ITaskInstanceGenerationRequested',
      'IUnscheduleRecurringTaskInstanceGenerationRequest',
      'ScheduleCreatedEvent',
      'SchedulePausedEvent',
      'ScheduleRecurringTaskInstanceGenerationFailed',
      'ScheduleRecurringTaskInstanceGenerationSucceeded',
      'ScheduleRemovedEvent',
      'ScheduleResumedEvent',
      'ScheduleUpdatedEvent',
      'ScheduledMessageEvent',
      'TaskInstanceCancelledEvent',
      'TaskInstanceCompletedEvent',
      'UnscheduleRecurringTaskInstanceGenerationFailed',
      'UnscheduleRecurringTaskInstanceGenerationSucceeded',
    ]);
  });
});
