import { completionOutcome } from './instances.service';

describe('completing an instance', () => {
  it('happens once, is repeatable, and never revives a cancelled one', () => {
    expect(completionOutcome('Pending')).toBe('complete');
    expect(completionOutcome('Completed')).toBe('repeat');
    expect(completionOutcome('Cancelled')).toBe('refuse');
  });
});
