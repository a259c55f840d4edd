import { INSTANCE_TRANSITIONS } from './instance.entity';

describe('completing an instance', () => {
  it('is idempotent, and impossible for a cancelled one', () => {
    expect(INSTANCE_TRANSITIONS.Pending.complete).toBe('Completed');
    expect(INSTANCE_TRANSITIONS.Completed.complete).toBe('Completed');
    expect(INSTANCE_TRANSITIONS.Cancelled.complete).toBeUndefined();
  });
});
