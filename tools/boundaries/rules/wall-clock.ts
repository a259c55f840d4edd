import type { Rule } from 'eslint';

/** Time is asked from a Clock (libs/time), so that tests and replicas agree on it. */
export const noWallClock: Rule.RuleModule = {
  meta: {
    type: 'problem',
    messages: { clock: 'ask a Clock from @platform/time instead of the machine' },
  },
  create(context) {
    return {
      "CallExpression[callee.object.name='Date'][callee.property.name='now']"(node: Rule.Node) {
        context.report({ node, messageId: 'clock' });
      },
      "NewExpression[callee.name='Date'][arguments.length=0]"(node: Rule.Node) {
        context.report({ node, messageId: 'clock' });
      },
      "CallExpression[callee.object.name='performance'][callee.property.name='now']"(node: Rule.Node) {
        context.report({ node, messageId: 'clock' });
      },
    };
  },
};
