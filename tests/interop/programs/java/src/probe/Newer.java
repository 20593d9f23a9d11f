package probe;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** What only 5.x has, called by its name: one source for both releases. */
final class Newer {
    private Newer() {
    }

    static boolean has(Object target, String name, int arguments) {
        return find(target, name, arguments) != null;
    }

    /** Calls the method of this name; whatever it throws is thrown on unchecked. */
    static Object call(Object target, String name, Object... arguments) {
        Method method = find(target, name, arguments.length);
        if (method == null) {
            throw new UnsupportedOperationException(target.getClass() + " of this release has no " + name);
        }
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException failure) {
            throw new IllegalStateException(failure.getCause().toString(), failure.getCause());
        } catch (IllegalAccessException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static Method find(Object target, String name, int arguments) {
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments) {
                return method;
            }
        }
        return null;
    }
}
