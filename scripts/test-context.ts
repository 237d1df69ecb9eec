import hooks from 'node:async_hooks'

/*
 * Loaded into each test process, before Node's test runner. The runner follows every promise through an async hook, to
 * know the test that a callback belongs to: more than half of the processor time of tests that await much. Here an
 * AsyncLocalStorage, which costs next to nothing, follows promises instead, and the hook follows the rest.
 */

const { AsyncLocalStorage, createHook, executionAsyncId } = hooks
/** The async id of the running test. */
const runningTest = new AsyncLocalStorage<number>()

// The test runner keeps the functions that it finds here while it loads.
hooks.createHook = (callbacks) =>
  createHook({
    ...callbacks,
    trackPromises: false,
    init(asyncId, type, triggerAsyncId, resource) {
      callbacks.init?.(asyncId, type, runningTest.getStore() ?? triggerAsyncId, resource)
      if (type === 'Test') followCallbacks(resource as hooks.AsyncResource)
    },
  })
hooks.executionAsyncId = () => runningTest.getStore() ?? executionAsyncId()
process.getBuiltinModule('node:test')
Object.assign(hooks, { createHook, executionAsyncId })

/** Notes the test in everything that its functions call or wait for. */
function followCallbacks(test: hooks.AsyncResource) {
  const { runInAsyncScope } = test
  test.runInAsyncScope = (run, ...args) => {
    const follow = function (this: unknown, ...inputs: unknown[]) {
      return runningTest.run(test.asyncId(), () => Reflect.apply(run, this, inputs))
    }
    return Reflect.apply(runInAsyncScope, test, [follow, ...args])
  }
}
