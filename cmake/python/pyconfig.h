// What Python's headers ask of a system, for extensions that are built elsewhere: the answers of every 64-bit system
// that wheels are built for. Python's own pyconfig.h has hundreds more, about the interpreter's inside.
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H

#ifdef _WIN32
#define MS_WINDOWS
#define MS_WIN64
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED 1
#define NT_THREADS 1
#define SIZEOF_LONG 4
#define SIZEOF_OFF_T 4
#define SIZEOF_WCHAR_T 2
#define SIZEOF_FPOS_T 8
#define ALIGNOF_LONG 4
#else
#define SIZEOF_LONG 8
#define SIZEOF_OFF_T 8
#define SIZEOF_WCHAR_T 4
#define SIZEOF_FPOS_T 16
#define SIZEOF_PTHREAD_T 8
#define ALIGNOF_LONG 8
#define HAVE_PTHREAD_H 1
#endif

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_PID_T 4
#define ALIGNOF_SIZE_T 8
#define HAVE_LONG_LONG 1
#define HAVE_UINTPTR_T 1
#define HAVE_SSIZE_T 1
#define HAVE_STDARG_PROTOTYPES 1
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_WCHAR_H 1
#define HAVE_BUILTIN_ATOMIC 1
#define HAVE_STD_ATOMIC 1
#define STDC_HEADERS 1
#define WITH_DOC_STRINGS 1
#define WITH_THREAD 1

#endif
